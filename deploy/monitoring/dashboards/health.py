"""Health: the process, its disks and its requests."""

from typing import Final

from deploy.monitoring.dashboards.panels import Dashboard, Panel, quantile, rate

HEALTH: Final = Dashboard(
    "ottla-broker",
    "Ottla: broker health",
    (
        Panel(
            "Event loop delay",
            "The longest time that a request waits before it is handled.",
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
            "Resident memory, and the part used by requests and unsent responses.",
            {
                "{{instance}}": 'process_resident_memory_bytes{job="ottla"}',
                "{{instance}}, requests": "ottla_request_memory_bytes",
            },
            "bytes",
        ),
        Panel(
            "Open files",
            "Open files and the limit of the process.",
            {
                "{{instance}}": 'process_open_fds{job="ottla"}',
                "{{instance}}, limit": 'process_max_fds{job="ottla"}',
            },
        ),
        Panel(
            "Connections",
            "Open connections, and those not read from because a limit is reached.",
            {
                "{{instance}}": "ottla_connections",
                "{{instance}}, paused": "ottla_connections_paused",
            },
        ),
        Panel(
            "Connections refused and closed",
            "Per second.",
            {
                "refused: {{reason}}": rate("ottla_connections_refused_total", "reason"),
                "closed: {{reason}}": rate("ottla_connections_closed_total", "reason"),
            },
            "cps",
            needs="refusals",
        ),
        Panel(
            "Throttled clients",
            "Requests throttled by a quota, per second.",
            {"{{quota}}": rate("ottla_throttles_total", "quota")},
            "cps",
        ),
        Panel(
            "Certificates",
            "Time until the listeners' certificates expire.",
            {"{{instance}} {{listener}}": ("ottla_certificate_expiry_timestamp_seconds - time()")},
            "s",
            alert="OttlaCertificateExpires",
            needs="certificates",
        ),
        Panel(
            "Requests",
            "Per second.",
            {"{{api}}": rate("ottla_requests_total", "api")},
            "reqps",
        ),
        Panel(
            "Waiting requests",
            "Produce requests wait for replicas or the disk, fetches for records.",
            {"{{api}}": "sum by (api) (ottla_requests_waiting)"},
        ),
        Panel(
            "Disk syncs, 99th percentile",
            "With flush.policy=ack, producers wait for them.",
            {"{{instance}}": quantile("ottla_flush_duration_seconds", "instance")},
            "s",
            alert="OttlaSlowFlushes",
        ),
        Panel(
            "Reads from the disk",
            "Consumer reads that miss the page cache, per second.",
            {"{{instance}} {{step}}": "rate(ottla_page_cache_misses_total[$interval])"},
            "cps",
        ),
        Panel(
            "Free disk",
            "Per log directory.",
            {"{{instance}} {{directory}}": "ottla_log_directory_free_bytes"},
            "bytes",
            alert="OttlaDiskLow",
        ),
        Panel(
            "Logs",
            "Size of all logs.",
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
            "Copied again from other replicas if there are any.",
            {
                "{{instance}}": "ottla_damaged_logs",
                "{{instance}}, not compacted": "ottla_cleaner_uncleanable_logs",
            },
            alert="OttlaDamagedLogs",
        ),
        Panel(
            "Known producers",
            "One per partition that a producer wrote to; they cost memory.",
            {"{{instance}}": "ottla_producer_ids"},
        ),
    ),
)
