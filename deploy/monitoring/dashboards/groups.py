"""Groups: members and lag of groups."""

from typing import Final

from deploy.monitoring.dashboards.panels import GROUP, Dashboard, Panel

GROUPS: Final = Dashboard(
    "ottla-groups",
    "Ottla: groups and lag",
    (
        Panel(
            "Lag in seconds",
            "The age of the oldest record that the group has not read, by the record's timestamp.",
            {"{{group}} {{topic}}": f"max by (group, topic) (ottla_group_lag_seconds{GROUP})"},
            "s",
            alert="OttlaGroupLag",
        ),
        Panel(
            "Lag in records",
            "All partitions together.",
            {"{{group}} {{topic}}": f"sum by (group, topic) (ottla_group_lag_records{GROUP})"},
            alert="OttlaGroupLag",
        ),
        Panel(
            "Records read",
            "Commits per second, in records.",
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
            "Per group.",
            {"{{consumergroup}}": 'kafka_consumergroup_members{consumergroup=~"$group"}'},
        ),
        Panel(
            "Groups by state",
            "Stable and Empty are the resting states.",
            {"{{type}} {{state}}": "sum by (type, state) (ottla_groups)"},
        ),
        Panel(
            "Rebalances",
            "Per minute, all groups. A group that keeps rebalancing gets little done.",
            {"{{instance}}": "60 * rate(ottla_group_rebalances_total[$interval])"},
        ),
        Panel(
            "Transactions",
            "Open transactions, and hanging ones that nothing will end.",
            {
                "open": "sum(ottla_open_transactions)",
                "hanging": "sum(ottla_hanging_transactions)",
            },
            alert="OttlaHangingTransactions",
        ),
    ),
    {"group": "ottla_group_lag_records"},
)
