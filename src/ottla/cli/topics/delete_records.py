"""`ottla topics delete-records`: remove the oldest records of a topic."""

from confluent_kafka import TopicPartition

from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import UsageError
from ottla.cli.output import print_json, print_rows
from ottla.cli.parameters import AsJson
from ottla.cli.topic_lookup import chosen_partitions, no_topic

LATEST = "latest"
_HIGH_WATERMARK = -1


def delete_records(
    topic: str,
    /,
    *,
    before: str,
    partition: list[int] | None = None,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """Remove the records before an offset from each partition of a topic, for good.

    Args:
        topic: Name of the topic.
        before: First offset to keep; latest removes all records.
        partition: Only this partition; may be repeated.
    """
    offset = _parse_offset(before)
    existing = connection.metadata().topics.get(topic)
    if existing is None:
        raise no_topic(topic)
    indexes = chosen_partitions(topic, existing.partitions, partition)
    admin = connection.admin()
    wanted = [TopicPartition(topic, index, offset) for index in indexes]
    rows = [
        {
            "partition": topic_partition.partition,
            "start_offset": connection.result(
                future, of=f"{topic}-{topic_partition.partition}"
            ).low_watermark,
        }
        for topic_partition, future in admin.delete_records(wanted).items()
    ]
    if as_json:
        print_json({"topic": topic, "partitions": rows})
    else:
        print_rows(("partition", "start_offset"), rows)


def _parse_offset(text: str) -> int:
    if text == LATEST:
        return _HIGH_WATERMARK
    if not text.isdecimal():
        raise UsageError(f"--before {text!r} is not an offset or {LATEST}")
    return int(text)
