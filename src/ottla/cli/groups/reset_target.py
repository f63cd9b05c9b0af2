"""Where `ottla groups reset-offsets` moves the offsets of a group to."""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from confluent_kafka.admin import OffsetSpec

from ottla.cli.errors import UsageError
from ottla.cli.groups.group_offsets import Offsets
from ottla.cli.start_position import parse_timestamp
from ottla.protocol.topics import TopicPartition

AskOffsets = Callable[[Collection[TopicPartition], OffsetSpec], Offsets]


class ToOffset(NamedTuple):
    offset: int


class ShiftBy(NamedTuple):
    records: int


Target = OffsetSpec | ToOffset | ShiftBy


def wanted_offsets(
    target: Target, ask: AskOffsets, topic_partitions: Sequence[TopicPartition], committed: Offsets
) -> Offsets:
    """They may lie outside of what the partitions hold."""
    match target:
        case ToOffset(offset):
            return dict.fromkeys(topic_partitions, offset)
        case ShiftBy(records):
            # A partition without an offset has nothing to shift and stays as it is.
            return {
                topic_partition: max(0, committed[topic_partition] + records)
                for topic_partition in topic_partitions
                if topic_partition in committed
            }
        case spec:
            found = ask(topic_partitions, spec)
            # The end, where nothing is as new as a timestamp.
            missing = [topic_partition for topic_partition, offset in found.items() if offset < 0]
            return {**found, **ask(missing, OffsetSpec.latest())}


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
        wishes.append(OffsetSpec.earliest())
    if to_latest:
        wishes.append(OffsetSpec.latest())
    if to_offset is not None:
        if to_offset < 0:
            raise UsageError(f"--to-offset {to_offset} is less than 0")
        wishes.append(ToOffset(to_offset))
    if to_timestamp is not None:
        wishes.append(OffsetSpec.for_timestamp(parse_timestamp(to_timestamp)))
    if shift_by is not None:
        wishes.append(ShiftBy(shift_by))
    if len(wishes) != 1:
        raise UsageError(
            "give one of --to-earliest, --to-latest, --to-offset, --to-timestamp and --shift-by"
        )
    return wishes[0]
