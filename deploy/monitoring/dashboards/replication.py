"""Replication: leaders, in-sync replicas and the quorum."""

from typing import Final

from deploy.monitoring.dashboards.panels import Dashboard, Panel, rate

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
            "In-sync set changes",
            "Per second. Alternate shrinking and expanding is a sign of a slow node or network.",
            {"{{change}}": rate("ottla_isr_changes_total", "change")},
            "cps",
            alert="OttlaUnderReplicatedPartitions",
        ),
        Panel(
            "New leaders",
            "Per second, as seen by each node.",
            {"{{instance}}": "rate(ottla_leader_elections_total[$interval])"},
            "cps",
        ),
        Panel(
            "Leaders",
            "Partitions led by each node; `ottla rebalance` evens them out.",
            {
                "{{instance}}": "ottla_leader_partitions",
                "{{instance}}, not preferred": "ottla_not_preferred_leader_partitions",
            },
        ),
        Panel(
            "Replication traffic",
            "Fetched from leaders.",
            {"{{instance}}": rate("ottla_topic_replication_bytes_in_total", "instance")},
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
            "Metadata lag",
            "Metadata records that a node has not applied yet.",
            {"{{instance}}": "ottla_metadata_committed_offset - ottla_metadata_applied_offset"},
        ),
        Panel(
            "Reassignments",
            "Partitions whose replicas are being reassigned.",
            {"partitions": "max(ottla_reassigning_partitions)"},
        ),
    ),
)
