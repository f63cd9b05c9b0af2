"""Health: the process, its disks and its requests."""

from typing import Final

from deploy.monitoring.dashboards.panels import Dashboard, Panel, quantile, rate

HEALTH: Final = Dashboard(
    "ottla-broker",
    "Ottla: broker health",
    (
        Panel(
            "Event loop late",
            "What a request waits at worst before anybody looks at it.",
            {"{{instance}}": "ottla_event_loop_lag_seconds"},
            "s",
            alert="OttlaEventLoopLate",
        ),
        Panel(
            "Processor",
            "Cores in use. One node uses one core, and a little more for disks.",
            {"{{instance}}": 'rate(process_cpu_seconds_total{job="ottla"}[$interval])'},
        ),
        Panel(
            "Memory",
            "Resident, and what requests and unsent answers take of it.",
            {
                "{{instance}}": 'process_resident_memory_bytes{job="ottla"}',
                "{{instance}}, requests": "ottla_request_memory_bytes",
            },
            "bytes",
        ),
        Panel(
            "Open files",
            "Beside the limit of the process.",
            {
                "{{instance}}": 'process_open_fds{job="ottla"}',
                "{{instance}}, limit": 'process_max_fds{job="ottla"}',
            },
        ),
        Panel(
            "Connections",
            "Open ones, and those that are not read from because of a bound.",
            {
                "{{instance}}": "ottla_connections",
                "{{instance}}, paused": "ottla_connections_paused",
            },
        ),
        Panel(
            "Connections refused and closed",
            "A second.",
            {
                "refused: {{reason}}": rate("ottla_connections_refused_total", "reason"),
                "closed: {{reason}}": rate("ottla_connections_closed_total", "reason"),
            },
            "cps",
            needs="refusals",
        ),
        Panel(
            "Clients held up",
            "Requests whose clients have used up a quota, a second.",
            {"{{quota}}": rate("ottla_throttles_total", "quota")},
            "cps",
        ),
        Panel(
            "Certificates",
            "How long the certificates of listeners are valid.",
            {"{{instance}} {{listener}}": ("ottla_certificate_expiry_timestamp_seconds - time()")},
            "s",
            alert="OttlaCertificateExpires",
            needs="certificates",
        ),
        Panel(
            "Requests",
            "A second.",
            {"{{api}}": rate("ottla_requests_total", "api")},
            "reqps",
        ),
        Panel(
            "Waiting requests",
            "Produces for replicas or the disk, fetches for records.",
            {"{{api}}": "sum by (api) (ottla_requests_waiting)"},
        ),
        Panel(
            "Slowest one in a hundred syncs",
            "Producers with acks wait for them, with flush.policy=ack.",
            {"{{instance}}": quantile("ottla_flush_duration_seconds", "instance")},
            "s",
            alert="OttlaSlowFlushes",
        ),
        Panel(
            "Reads from the disk",
            "What consumers read that is not in the page cache, a second.",
            {"{{instance}} {{step}}": "rate(ottla_page_cache_misses_total[$interval])"},
            "cps",
        ),
        Panel(
            "Free disk",
            "Of each log directory.",
            {"{{instance}} {{directory}}": "ottla_log_directory_free_bytes"},
            "bytes",
            alert="OttlaDiskLow",
        ),
        Panel(
            "Logs",
            "Size and segments.",
            {"{{instance}}": "ottla_logs_bytes"},
            "bytes",
            alert="OttlaDiskFullSoon",
        ),
        Panel(
            "Retention and compaction",
            "Bytes removed by retention, and read and kept by compaction.",
            {
                "{{instance}}, removed": "rate(ottla_retention_bytes_total[$interval])",
                "{{instance}}, read": "rate(ottla_cleaner_read_bytes_total[$interval])",
                "{{instance}}, kept": "rate(ottla_cleaner_written_bytes_total[$interval])",
            },
            "Bps",
        ),
        Panel(
            "Damaged replicas",
            "They are copied anew from others where there are some.",
            {
                "{{instance}}": "ottla_damaged_logs",
                "{{instance}}, not compacted": "ottla_cleaner_uncleanable_logs",
            },
            alert="OttlaDamagedLogs",
        ),
        Panel(
            "Producers remembered",
            "One for each partition that a producer wrote to; they cost memory.",
            {"{{instance}}": "ottla_producer_ids"},
        ),
    ),
)
