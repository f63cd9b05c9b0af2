"""Shares: share groups and their records."""

from typing import Final

from deploy.monitoring.dashboards.panels import GROUP, Dashboard, Panel, rate

SHARES: Final = Dashboard(
    "ottla-shares",
    "Ottla: share groups and queues",
    (
        Panel(
            "Unfinished records",
            "Waiting, in flight or unread.",
            {
                "{{group}} {{topic}}": (
                    f"sum by (group, topic) (ottla_share_group_lag_records{GROUP})"
                )
            },
            needs="share groups",
        ),
        Panel(
            "In flight",
            "Records that consumers hold and have not acknowledged yet.",
            {
                "{{group}} {{topic}}": (
                    f"sum by (group, topic) (ottla_share_group_in_flight_records{GROUP})"
                )
            },
            needs="share groups",
        ),
        Panel(
            "Delayed",
            "Records that wait for their delivery time.",
            {
                "{{group}} {{topic}}": (
                    f"sum by (group, topic) (ottla_share_group_delayed_records{GROUP})"
                )
            },
            needs="share groups",
        ),
        Panel(
            "Deliveries",
            "Per second, and how many of them were redeliveries.",
            {
                "{{group}}": rate("ottla_share_group_deliveries_total", "group", GROUP),
                "{{group}}, again": rate("ottla_share_group_redeliveries_total", "group", GROUP),
            },
            "cps",
            needs="share groups",
        ),
        Panel(
            "Dead letters",
            "Records given up on per second, and dead letters that cannot be written.",
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
