"""Which version of a table holds a topic's rows up to an offset."""

from collections.abc import Mapping

from ottla.client.wire.cluster import TopicPartition
from pyspark_ottla.stream_offsets import flat_offsets
from pyspark_ottla.tables.address import TableError
from pyspark_ottla.tables.table import Table, Version


def parse_offset(text: str) -> tuple[TopicPartition, int]:
    """`topic:partition:offset`."""
    topic, _, rest = text.rpartition(":")[0].rpartition(":")
    offset = text.rpartition(":")[2]
    if not topic or not rest.isdecimal() or not offset.isdecimal():
        raise TableError(f"{text!r} is not like orders:0:1234, a topic, partition and offset")
    return TopicPartition(topic, int(rest)), int(offset)


def find_version(table: Table, offsets: Mapping[TopicPartition, int]) -> Version:
    """The first remembered version that holds the records at all the offsets.

    It then holds all earlier records of their partitions too. Raises TableError if there is none.
    """
    versions = list(table.versions())
    ends: dict[TopicPartition, int] = {}
    for version in reversed(versions):
        ends |= ends_of(version)
        if all(
            ends.get(topic_partition, 0) > offset for topic_partition, offset in offsets.items()
        ):
            return version
    missing = [
        f"{topic_partition} ends at {ends[topic_partition]}"
        if topic_partition in ends
        else f"it has nothing of {topic_partition}"
        for topic_partition, offset in offsets.items()
        if ends.get(topic_partition, 0) <= offset
    ]
    raise TableError(f"the table does not reach so far: {', '.join(missing)}")


def ends_of(version: Version) -> dict[TopicPartition, int]:
    return {} if version.batch is None else flat_offsets(version.batch.ends)
