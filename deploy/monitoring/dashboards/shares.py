"""Shares: share groups and their records."""

from typing import Final

from deploy.monitoring.dashboards.panels import GROUP, Dashboard, Panel, rate

SHARES: Final = Dashboard(
    "ottla-shares",
    "Ottla: share groups and queues",
    (
        Panel(
            "Waiting",
            "Records that are not done with.",
            {
                "{{group}} {{topic}}": (
                    f"sum by (group, topic) (ottla_share_group_lag_records{GROUP})"
                )
            },
            needs="share groups",
        ),
        Panel(
            "In flight",
            "Records that consumers have and did not acknowledge yet.",
            {
                "{{group}} {{topic}}": (
                    f"sum by (group, topic) (ottla_share_group_in_flight_records{GROUP})"
                )
            },
            needs="share groups",
        ),
        Panel(
            "Delayed",
            "Records that wait for their time.",
            {
                "{{group}} {{topic}}": (
                    f"sum by (group, topic) (ottla_share_group_delayed_records{GROUP})"
                )
            },
            needs="share groups",
        ),
        Panel(
            "Deliveries",
            "A second, and those of them that were repeated.",
            {
                "{{group}}": rate("ottla_share_group_deliveries_total", "group", GROUP),
                "{{group}}, again": rate("ottla_share_group_redeliveries_total", "group", GROUP),
            },
            "cps",
            needs="share groups",
        ),
        Panel(
            "Dead letters",
            "Records given up, a second, and those that cannot be written.",
            {
                "{{group}}": rate("ottla_share_group_dead_letters_total", "group", GROUP),
                "{{group}}, waiting": (
                    f"sum by (group) (ottla_share_group_dead_letters_waiting{GROUP})"
                ),
            },
            alert="OttlaDeadLetters",
            needs="share groups",
        ),
    ),
    {"group": "ottla_share_group_lag_records"},
)
