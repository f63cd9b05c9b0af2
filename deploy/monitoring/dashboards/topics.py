"""Topics: what topics take in and give out."""

from typing import Final

from deploy.monitoring.dashboards.panels import TOPIC, Dashboard, Panel, rate

TOPICS: Final = Dashboard(
    "ottla-topics",
    "Ottla: topics",
    (
        Panel(
            "Records in",
            "Written by producers, per second.",
            {"{{topic}}": rate("ottla_topic_records_in_total", "topic", TOPIC)},
            "cps",
        ),
        Panel(
            "Records out",
            "Sent to consumers, per second.",
            {"{{topic}}": rate("ottla_topic_records_out_total", "topic", TOPIC)},
            "cps",
        ),
        Panel(
            "Bytes in",
            "Written by producers.",
            {"{{topic}}": rate("ottla_topic_bytes_in_total", "topic", TOPIC)},
            "Bps",
        ),
        Panel(
            "Bytes out",
            "Sent to consumers.",
            {"{{topic}}": rate("ottla_topic_bytes_out_total", "topic", TOPIC)},
            "Bps",
        ),
        Panel(
            "Produce requests",
            "One per partition. Few large requests cost less than many small ones.",
            {"{{topic}}": rate("ottla_topic_produce_requests_total", "topic", TOPIC)},
            "reqps",
        ),
        Panel(
            "Size",
            "Size of the leaders' logs.",
            {
                "{{topic}}": (
                    f"sum by (topic) (ottla_partition_size_bytes{TOPIC}"
                    f" * (ottla_partition_is_leader{TOPIC} == 1))"
                )
            },
            "bytes",
            alert="OttlaDiskFullSoon",
        ),
        Panel(
            "Segments",
            "All replicas together.",
            {"{{topic}}": f"sum by (topic) (ottla_partition_segments{TOPIC})"},
        ),
    ),
    {"topic": "ottla_topic_records_in_total"},
)
