"""The dashboards as data: which questions each one answers, by which queries.

`$interval` in a query is the range of a rate: Grafana's `$__rate_interval`, or what a test needs.
"""

from typing import Final, NamedTuple

_TOPIC: Final = '{topic=~"$topic"}'
_GROUP: Final = '{group=~"$group"}'


class Panel(NamedTuple):
    title: str
    text: str
    queries: dict[str, str]  # By legend.
    unit: str = "short"
    alert: str = ""  # Whose runbook it links to.
    needs: str = ""  # What has to run for there to be anything to see.


class Dashboard(NamedTuple):
    uid: str
    title: str
    panels: tuple[Panel, ...]
    variables: dict[str, str] = {}  # Names, and the metrics whose label they choose from.


def _rate(metric: str, by: str, labels: str = "") -> str:
    return f"sum by ({by}) (rate({metric}{labels}[$interval]))"


def _quantile(metric: str, by: str, labels: str = "") -> str:
    return f"histogram_quantile(0.99, {_rate(f'{metric}_bucket', f'{by}, le', labels)})"


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
            "There is one at a time; none for some seconds while a new one is elected.",
            {"controllers": "sum(ottla_controller)"},
            alert="OttlaNoController",
        ),
        Panel(
            "Partitions that need attention",
            "Offline: nobody leads them. Under min ISR: acks=all is refused. Under-replicated: a"
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
            "Of all topics, a second.",
            {
                "in": "sum(rate(ottla_topic_records_in_total[$interval]))",
                "out": "sum(rate(ottla_topic_records_out_total[$interval]))",
            },
            "cps",
        ),
        Panel(
            "Bytes in and out",
            "What producers write and consumers read, of all topics.",
            {
                "in": "sum(rate(ottla_topic_bytes_in_total[$interval]))",
                "out": "sum(rate(ottla_topic_bytes_out_total[$interval]))",
                "copied": "sum(rate(ottla_topic_replication_bytes_in_total[$interval]))",
            },
            "Bps",
        ),
        Panel(
            "Slowest one in a hundred requests",
            "With all that they waited for: a fetch also for new records.",
            {"{{api}}": _quantile("ottla_request_duration_seconds", "api")},
            "s",
            alert="OttlaEventLoopLate",
        ),
        Panel(
            "Errors",
            "Items refused, a second. Some belong to normal operation, such as"
            " NOT_LEADER_OR_FOLLOWER when leaders move.",
            {"{{api}} {{error}}": _rate("ottla_request_errors_total", "api, error")},
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
            "How long a record takes through each broker and back; one in a hundred takes longer.",
            {"broker {{broker}}": _quantile("ottla_probe_duration_seconds", "broker")},
            "s",
            alert="OttlaProbeFailing",
        ),
        Panel(
            "Free disk",
            "Of each log directory.",
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

TOPICS: Final = Dashboard(
    "ottla-topics",
    "Ottla: topics",
    (
        Panel(
            "Records in",
            "Written by producers, a second.",
            {"{{topic}}": _rate("ottla_topic_records_in_total", "topic", _TOPIC)},
            "cps",
        ),
        Panel(
            "Records out",
            "Sent to consumers, a second.",
            {"{{topic}}": _rate("ottla_topic_records_out_total", "topic", _TOPIC)},
            "cps",
        ),
        Panel(
            "Bytes in",
            "Written by producers.",
            {"{{topic}}": _rate("ottla_topic_bytes_in_total", "topic", _TOPIC)},
            "Bps",
        ),
        Panel(
            "Bytes out",
            "Sent to consumers.",
            {"{{topic}}": _rate("ottla_topic_bytes_out_total", "topic", _TOPIC)},
            "Bps",
        ),
        Panel(
            "Produce requests",
            "One for each partition. Few large ones cost less than many small ones.",
            {"{{topic}}": _rate("ottla_topic_produce_requests_total", "topic", _TOPIC)},
            "reqps",
        ),
        Panel(
            "Size",
            "Of the leaders' logs.",
            {
                "{{topic}}": (
                    f"sum by (topic) (ottla_partition_size_bytes{_TOPIC}"
                    f" * (ottla_partition_is_leader{_TOPIC} == 1))"
                )
            },
            "bytes",
            alert="OttlaDiskFullSoon",
        ),
        Panel(
            "Segments",
            "Of all replicas.",
            {"{{topic}}": f"sum by (topic) (ottla_partition_segments{_TOPIC})"},
        ),
    ),
    {"topic": "ottla_topic_records_in_total"},
)

GROUPS: Final = Dashboard(
    "ottla-groups",
    "Ottla: groups and lag",
    (
        Panel(
            "Lag in seconds",
            "The age of the oldest record that the group has not read, by the record's timestamp.",
            {"{{group}} {{topic}}": f"max by (group, topic) (ottla_group_lag_seconds{_GROUP})"},
            "s",
            alert="OttlaGroupLag",
        ),
        Panel(
            "Lag in records",
            "Of all partitions.",
            {"{{group}} {{topic}}": f"sum by (group, topic) (ottla_group_lag_records{_GROUP})"},
            alert="OttlaGroupLag",
        ),
        Panel(
            "Records read",
            "Committed, a second.",
            {
                "{{consumergroup}} {{topic}}": (
                    "sum by (consumergroup, topic) (rate(kafka_consumergroup_current_offset"
                    '{consumergroup=~"$group"}[$interval]))'
                )
            },
            "cps",
        ),
        Panel(
            "Members",
            "Of each group.",
            {"{{consumergroup}}": 'kafka_consumergroup_members{consumergroup=~"$group"}'},
        ),
        Panel(
            "Groups by state",
            "Stable and Empty are states of rest.",
            {"{{type}} {{state}}": "sum by (type, state) (ottla_groups)"},
        ),
        Panel(
            "Rebalances",
            "Of all groups, a minute. A group that rebalances all the time gets little done.",
            {"{{instance}}": "60 * rate(ottla_group_rebalances_total[$interval])"},
        ),
        Panel(
            "Transactions",
            "Open ones, and those that nobody ends.",
            {
                "open": "sum(ottla_open_transactions)",
                "hanging": "sum(ottla_hanging_transactions)",
            },
            alert="OttlaHangingTransactions",
        ),
    ),
    {"group": "ottla_group_lag_records"},
)

REPLICATION: Final = Dashboard(
    "ottla-replication",
    "Ottla: replication and quorum",
    (
        Panel(
            "Under-replicated partitions",
            "By the node that leads them.",
            {"{{instance}}": "ottla_under_replicated_partitions"},
            alert="OttlaUnderReplicatedPartitions",
        ),
        Panel(
            "Partitions under min ISR",
            "They refuse records with acks=all.",
            {"{{instance}}": "ottla_under_min_isr_partitions"},
            alert="OttlaUnderMinIsrPartitions",
        ),
        Panel(
            "Changes of in-sync sets",
            "A second. Shrinking and expanding in turn is the sign of a slow node or network.",
            {"{{change}}": _rate("ottla_isr_changes_total", "change")},
            "cps",
            alert="OttlaUnderReplicatedPartitions",
        ),
        Panel(
            "New leaders",
            "A second, as each node hears of them.",
            {"{{instance}}": "rate(ottla_leader_elections_total[$interval])"},
            "cps",
        ),
        Panel(
            "Leaders",
            "Partitions that each node leads; `ottla rebalance` spreads them.",
            {
                "{{instance}}": "ottla_leader_partitions",
                "{{instance}}, not preferred": "ottla_not_preferred_leader_partitions",
            },
        ),
        Panel(
            "Copied",
            "From leaders.",
            {"{{instance}}": _rate("ottla_topic_replication_bytes_in_total", "instance")},
            "Bps",
        ),
        Panel(
            "Controllers",
            "One at a time.",
            {"{{instance}}": "ottla_controller"},
            alert="OttlaTwoControllers",
        ),
        Panel(
            "Quorum epoch",
            "Each step is an election.",
            {"{{instance}}": "ottla_quorum_epoch"},
            alert="OttlaNoController",
        ),
        Panel(
            "Metadata behind",
            "Records of the metadata that a node has not applied yet.",
            {"{{instance}}": "ottla_metadata_committed_offset - ottla_metadata_applied_offset"},
        ),
        Panel(
            "Being moved",
            "Partitions whose replicas are being reassigned.",
            {"partitions": "max(ottla_reassigning_partitions)"},
        ),
    ),
)

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
                "refused: {{reason}}": _rate("ottla_connections_refused_total", "reason"),
                "closed: {{reason}}": _rate("ottla_connections_closed_total", "reason"),
            },
            "cps",
            needs="refusals",
        ),
        Panel(
            "Requests",
            "A second.",
            {"{{api}}": _rate("ottla_requests_total", "api")},
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
            {"{{instance}}": _quantile("ottla_flush_duration_seconds", "instance")},
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

SHARES: Final = Dashboard(
    "ottla-shares",
    "Ottla: share groups and queues",
    (
        Panel(
            "Waiting",
            "Records that are not done with.",
            {
                "{{group}} {{topic}}": (
                    f"sum by (group, topic) (ottla_share_group_lag_records{_GROUP})"
                )
            },
            needs="share groups",
        ),
        Panel(
            "In flight",
            "Records that consumers have and did not acknowledge yet.",
            {
                "{{group}} {{topic}}": (
                    f"sum by (group, topic) (ottla_share_group_in_flight_records{_GROUP})"
                )
            },
            needs="share groups",
        ),
        Panel(
            "Delayed",
            "Records that wait for their time.",
            {
                "{{group}} {{topic}}": (
                    f"sum by (group, topic) (ottla_share_group_delayed_records{_GROUP})"
                )
            },
            needs="share groups",
        ),
        Panel(
            "Deliveries",
            "A second, and those of them that were repeated.",
            {
                "{{group}}": _rate("ottla_share_group_deliveries_total", "group", _GROUP),
                "{{group}}, again": _rate("ottla_share_group_redeliveries_total", "group", _GROUP),
            },
            "cps",
            needs="share groups",
        ),
        Panel(
            "Dead letters",
            "Records given up, a second, and those that cannot be written.",
            {
                "{{group}}": _rate("ottla_share_group_dead_letters_total", "group", _GROUP),
                "{{group}}, waiting": (
                    f"sum by (group) (ottla_share_group_dead_letters_waiting{_GROUP})"
                ),
            },
            alert="OttlaDeadLetters",
            needs="share groups",
        ),
    ),
    {"group": "ottla_share_group_lag_records"},
)

PIPELINES: Final = Dashboard(
    "ottla-pipelines",
    "Ottla: Spark pipelines",
    (
        Panel(
            "Running and failed",
            "1 while a sink's query runs; 1 after it failed.",
            {
                "{{pipeline}} {{sink}}, running": "ottla_pipeline_running",
                "{{pipeline}} {{sink}}, failed": "ottla_pipeline_failed",
            },
            alert="OttlaPipelineFailed",
            needs="pipelines",
        ),
        Panel(
            "Rows in and out",
            "A second.",
            {
                "{{pipeline}} {{sink}}, in": "rate(ottla_pipeline_rows_in_total[$interval])",
                "{{pipeline}} {{sink}}, out": "rate(ottla_pipeline_rows_out_total[$interval])",
            },
            "cps",
            needs="pipelines",
        ),
        Panel(
            "Not read yet",
            "Records in the topics that a sink's query has not read.",
            {"{{pipeline}} {{sink}}": "ottla_pipeline_lag_records"},
            alert="OttlaGroupLag",
            needs="pipelines",
        ),
        Panel(
            "Batch",
            "How long the last one took.",
            {"{{pipeline}} {{sink}}": "ottla_pipeline_batch_duration_ms"},
            "ms",
            needs="pipelines",
        ),
        Panel(
            "State",
            "Memory of the state of the steps.",
            {"{{pipeline}} {{sink}}": "ottla_pipeline_state_bytes"},
            "bytes",
            needs="pipelines",
        ),
        Panel(
            "Refused rows",
            "Rows that are not as expected, a second.",
            {
                "{{pipeline}} {{place}} {{expectation}}": (
                    "rate(ottla_pipeline_rows_refused_total[$interval])"
                )
            },
            "cps",
            needs="pipelines",
        ),
    ),
)

DASHBOARDS: Final = (OVERVIEW, TOPICS, GROUPS, REPLICATION, HEALTH, SHARES, PIPELINES)
