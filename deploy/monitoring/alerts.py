"""The alerts, from which the rules, their tests and the list of runbooks are generated.

`example` is what promtool feeds the rule with: series in its notation, a value a minute. The alert
fires after `after_m` minutes, and not before the series show the problem.
"""

from typing import Final, NamedTuple

JOB: Final = "ottla"  # The nodes' job in Prometheus' configuration.


class Alert(NamedTuple):
    name: str
    severity: str
    expression: str
    lasting: str  # How long the expression must hold.
    summary: str
    example: dict[str, str]
    after_m: int

    @property
    def anchor(self) -> str:
        return self.name.lower()


ALERTS: Final = (
    Alert(
        "OttlaBrokerDown",
        "critical",
        f'up{{job="{JOB}"}} == 0',
        "1m",
        "Node {{ $labels.instance }} does not answer.",
        {f'up{{job="{JOB}",instance="one"}}': "1 1 0x10"},
        6,
    ),
    Alert(
        "OttlaOfflinePartitions",
        "critical",
        "max(ottla_offline_partitions) > 0",
        "1m",
        "{{ $value }} partitions have no leader.",
        {'ottla_offline_partitions{instance="one"}': "0 0 2x10"},
        6,
    ),
    Alert(
        "OttlaUnderReplicatedPartitions",
        "warning",
        "sum(ottla_under_replicated_partitions) > 0",
        "5m",
        "{{ $value }} partitions have replicas that are not in sync.",
        {'ottla_under_replicated_partitions{instance="one"}': "0 0 3x15"},
        12,
    ),
    Alert(
        "OttlaUnderMinIsrPartitions",
        "critical",
        "sum(ottla_under_min_isr_partitions) > 0",
        "1m",
        "{{ $value }} partitions refuse records with acks=all.",
        {'ottla_under_min_isr_partitions{instance="one"}': "0 0 1x10"},
        6,
    ),
    Alert(
        "OttlaNoController",
        "critical",
        "sum(ottla_controller) == 0",
        "1m",
        "No node has an active controller.",
        {'ottla_controller{instance="one"}': "1 1 0x10"},
        6,
    ),
    Alert(
        "OttlaTwoControllers",
        "critical",
        "sum(ottla_controller) > 1",
        "1m",
        "{{ $value }} nodes believe that they are the active controller.",
        {
            'ottla_controller{instance="one"}': "1x12",
            'ottla_controller{instance="two"}': "0 0 1x10",
        },
        6,
    ),
    Alert(
        "OttlaDirectoryOffline",
        "critical",
        "ottla_log_directory_online == 0",
        "0m",
        "{{ $labels.directory }} of {{ $labels.instance }} has failed.",
        {'ottla_log_directory_online{instance="one",directory="/data"}': "1 1 0x10"},
        4,
    ),
    Alert(
        "OttlaDiskLow",
        "warning",
        "ottla_log_directory_free_bytes / ottla_log_directory_size_bytes < 0.1",
        "5m",
        "Only {{ $value | humanizePercentage }} of {{ $labels.directory }} is free on"
        " {{ $labels.instance }}.",
        {
            'ottla_log_directory_free_bytes{instance="one",directory="/data"}': "50 50 5x15",
            'ottla_log_directory_size_bytes{instance="one",directory="/data"}': "100x17",
        },
        12,
    ),
    Alert(
        "OttlaDiskFullSoon",
        "warning",
        "predict_linear(ottla_log_directory_free_bytes[1h], 24 * 3600) < 0",
        "10m",
        "{{ $labels.directory }} on {{ $labels.instance }} will be full within a day at the"
        " current rate.",
        {'ottla_log_directory_free_bytes{instance="one",directory="/data"}': "1000x5 1000-10x80"},
        40,
    ),
    Alert(
        "OttlaGroupLag",
        "warning",
        "max by (group, topic) (ottla_group_lag_seconds) > 300",
        "5m",
        "Group {{ $labels.group }} is {{ $value | humanizeDuration }} behind in"
        " {{ $labels.topic }}.",
        {'ottla_group_lag_seconds{group="g",topic="t",partition="0"}': "0 0 900x15"},
        12,
    ),
    Alert(
        "OttlaDeadLetters",
        "warning",
        "sum by (group) (increase(ottla_share_group_dead_letters_total[10m])) > 0",
        "0m",
        "Share group {{ $labels.group }} gives up on records.",
        {'ottla_share_group_dead_letters_total{instance="one",group="g"}': "0 0 0 5x10"},
        6,
    ),
    Alert(
        "OttlaSlowFlushes",
        "warning",
        "histogram_quantile(0.99, sum by (instance, le)"
        " (rate(ottla_flush_duration_seconds_bucket[5m]))) > 0.25",
        "5m",
        "One sync in a hundred takes {{ $value | humanizeDuration }} on {{ $labels.instance }}.",
        {
            'ottla_flush_duration_seconds_bucket{instance="one",le="0.268435456"}': "0 0 0+0x20",
            'ottla_flush_duration_seconds_bucket{instance="one",le="1.073741824"}': "0 0 0+60x20",
            'ottla_flush_duration_seconds_bucket{instance="one",le="+Inf"}': "0 0 0+60x20",
        },
        15,
    ),
    Alert(
        "OttlaProbeFailing",
        "critical",
        'sum by (broker) (increase(ottla_probe_records_total{result="lost"}[5m])) > 2',
        "0m",
        "The probe loses records through broker {{ $labels.broker }}.",
        {'ottla_probe_records_total{instance="one",broker="2",result="lost"}': "0 0 0+30x10"},
        8,
    ),
    Alert(
        "OttlaEventLoopLate",
        "warning",
        "ottla_event_loop_lag_seconds > 1",
        "2m",
        "Requests wait up to {{ $value | humanizeDuration }} before {{ $labels.instance }} handles"
        " them.",
        {'ottla_event_loop_lag_seconds{instance="one"}': "0 0 3x10"},
        8,
    ),
    Alert(
        "OttlaHangingTransactions",
        "warning",
        "sum(ottla_hanging_transactions) > 0",
        "5m",
        "{{ $value }} transactions hang: nothing will end them.",
        {'ottla_hanging_transactions{instance="one"}': "0 0 1x15"},
        12,
    ),
    Alert(
        "OttlaDamagedLogs",
        "critical",
        "ottla_damaged_logs > 0",
        "0m",
        "{{ $value }} replicas on {{ $labels.instance }} are damaged.",
        {'ottla_damaged_logs{instance="one"}': "0 0 1x10"},
        4,
    ),
    Alert(
        "OttlaCertificateExpires",
        "warning",
        "ottla_certificate_expiry_timestamp_seconds - time() < 14 * 86400",
        "0m",
        "The certificate of listener {{ $labels.listener }} on {{ $labels.instance }} expires in"
        " {{ $value | humanizeDuration }}.",
        {
            'ottla_certificate_expiry_timestamp_seconds{instance="one",listener="SSL"}': (
                "2592000 2592000 600000x10"
            )
        },
        4,
    ),
    Alert(
        "OttlaPipelineFailed",
        "critical",
        "ottla_pipeline_failed > 0",
        "0m",
        "Sink {{ $labels.sink }} of pipeline {{ $labels.pipeline }} has failed.",
        {'ottla_pipeline_failed{pipeline="p",sink="s"}': "0 0 1x10"},
        4,
    ),
)
