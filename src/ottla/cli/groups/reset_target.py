"""Where `ottla groups reset-offsets` moves the offsets of a group to."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from ottla.cli.connection import Connection
from ottla.cli.errors import UsageError
from ottla.cli.start_position import parse_timestamp

PartitionName = tuple[str, int]
Offsets = Mapping[PartitionName, int]


class Ranges(NamedTuple):
    """What the partitions hold now."""

    starts: Offsets
    ends: Offsets


class Target(Protocol):
    def offsets(
        self,
        partitions: "Partitions",
        topic_partitions: Sequence[PartitionName],
        committed: Offsets,
    ) -> Offsets:
        """The wanted offset of each partition; it may lie outside of what the partition holds."""
        ...


class Partitions:
    """The offsets of partitions, asked of the broker."""

    def __init__(self, connection: Connection, admin: AdminClient) -> None:
        self._connection = connection
        self._admin = admin

    def offsets(self, topic_partitions: Sequence[PartitionName], spec: OffsetSpec) -> Offsets:
        if not topic_partitions:
            return {}
        futures = self._admin.list_offsets(
            {TopicPartition(*topic_partition): spec for topic_partition in topic_partitions}
        )
        return {
            (topic_partition.topic, topic_partition.partition): self._connection.result(
                future, of=topic_partition.topic
            ).offset
            for topic_partition, future in futures.items()
        }

    def ranges(self, topic_partitions: Sequence[PartitionName]) -> Ranges:
        starts = self.offsets(topic_partitions, OffsetSpec.earliest())
        return Ranges(starts, self.offsets(topic_partitions, OffsetSpec.latest()))


class ToEarliest:
    def offsets(
        self, partitions: Partitions, topic_partitions: Sequence[PartitionName], committed: Offsets
    ) -> Offsets:
        del committed
        return partitions.offsets(topic_partitions, OffsetSpec.earliest())


class ToLatest:
    def offsets(
        self, partitions: Partitions, topic_partitions: Sequence[PartitionName], committed: Offsets
    ) -> Offsets:
        del committed
        return partitions.offsets(topic_partitions, OffsetSpec.latest())


class ToOffset(NamedTuple):
    offset: int

    def offsets(
        self, partitions: Partitions, topic_partitions: Sequence[PartitionName], committed: Offsets
    ) -> Offsets:
        del partitions, committed
        return dict.fromkeys(topic_partitions, self.offset)


class ToTimestamp(NamedTuple):
    timestamp_ms: int

    def offsets(
        self, partitions: Partitions, topic_partitions: Sequence[PartitionName], committed: Offsets
    ) -> Offsets:
        """The end, where nothing is as new."""
        del committed
        found = partitions.offsets(topic_partitions, OffsetSpec.for_timestamp(self.timestamp_ms))
        missing = [topic_partition for topic_partition, offset in found.items() if offset < 0]
        return {**found, **partitions.offsets(missing, OffsetSpec.latest())}


class ShiftBy(NamedTuple):
    records: int

    def offsets(
        self, partitions: Partitions, topic_partitions: Sequence[PartitionName], committed: Offsets
    ) -> Offsets:
        """A partition without an offset has nothing to shift and stays as it is."""
        del partitions
        return {
            topic_partition: max(0, committed[topic_partition] + self.records)
            for topic_partition in topic_partitions
            if topic_partition in committed
        }


def parse_target(
    *,
    to_earliest: bool,
    to_latest: bool,
    to_offset: int | None,
    to_timestamp: str | None,
    shift_by: int | None,
) -> Target:
    wishes: list[Target] = []
    if to_earliest:
        wishes.append(ToEarliest())
    if to_latest:
        wishes.append(ToLatest())
    if to_offset is not None:
        wishes.append(_to_offset(to_offset))
    if to_timestamp is not None:
        wishes.append(ToTimestamp(parse_timestamp(to_timestamp)))
    if shift_by is not None:
        wishes.append(ShiftBy(shift_by))
    if len(wishes) != 1:
        raise UsageError(
            "give one of --to-earliest, --to-latest, --to-offset, --to-timestamp and --shift-by"
        )
    return wishes[0]


def _to_offset(offset: int) -> Target:
    if offset < 0:
        raise UsageError(f"--to-offset {offset} is less than 0")
    return ToOffset(offset)
