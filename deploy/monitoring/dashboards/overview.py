"""Overview: what to look at first."""

from typing import Final

from deploy.monitoring.dashboards.panels import Dashboard, Panel, quantile, rate

OVERVIEW: Final = Dashboard(
    "ottla-overview",
    "Ottla: overview",
    (
        Panel(
            "Nodes",
            "Nodes that answer, and brokers that the controller counts as active.",
            {"answer": 'sum(up{job="ottla"})', "active": 'max(ottla_brokers{state="active"})'},
            alert="OttlaBrokerDown",
        ),
        Panel(
            "Controllers",
            "One at a time; none for some seconds during an election.",
            {"controllers": "sum(ottla_controller)"},
            alert="OttlaNoController",
        ),
        Panel(
            "Partitions that need attention",
            "Offline: no leader. Under min ISR: acks=all is refused. Under-replicated: a"
            " replica is not in sync.",
            {
                "offline": "max(ottla_offline_partitions)",
                "under min ISR": "sum(ottla_under_min_isr_partitions)",
                "under-replicated": "sum(ottla_under_replicated_partitions)",
            },
            alert="OttlaOfflinePartitions",
        ),
        Panel(
            "Records in and out",
            "Per second, all topics.",
            {
                "in": "sum(rate(ottla_topic_records_in_total[$interval]))",
                "out": "sum(rate(ottla_topic_records_out_total[$interval]))",
            },
            "cps",
        ),
        Panel(
            "Bytes in and out",
            "What producers write and consumers read, all topics.",
            {
                "in": "sum(rate(ottla_topic_bytes_in_total[$interval]))",
                "out": "sum(rate(ottla_topic_bytes_out_total[$interval]))",
                "replicated": "sum(rate(ottla_topic_replication_bytes_in_total[$interval]))",
            },
            "Bps",
        ),
        Panel(
            "Request latency, 99th percentile",
            "Including waits, such as a fetch's wait for new records.",
            {"{{api}}": quantile("ottla_request_duration_seconds", "api")},
            "s",
            alert="OttlaEventLoopLate",
        ),
        Panel(
            "Errors",
            "Refused items per second. Some are normal, such as"
            " NOT_LEADER_OR_FOLLOWER when leaders move.",
            {"{{api}} {{error}}": rate("ottla_request_errors_total", "api, error")},
            "cps",
            needs="errors",
        ),
        Panel(
            "Groups furthest behind",
            "The age of the oldest record that a group has not read.",
            {"{{group}}": "topk(10, max by (group) (ottla_group_lag_seconds))"},
            "s",
            alert="OttlaGroupLag",
        ),
        Panel(
            "Probe",
            "Round trip of a record through each broker, 99th percentile.",
            {"broker {{broker}}": quantile("ottla_probe_duration_seconds", "broker")},
            "s",
            alert="OttlaProbeFailing",
        ),
        Panel(
            "Free disk",
            "Per log directory.",
            {
                "{{instance}} {{directory}}": (
                    "ottla_log_directory_free_bytes / ottla_log_directory_size_bytes"
                )
            },
            "percentunit",
            alert="OttlaDiskLow",
        ),
    ),
)
