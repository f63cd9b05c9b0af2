"""Start and end positions as options give them, and the offsets they resolve to."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.offsets import EARLIEST, LATEST, Isolation, list_offsets
from pyspark_ottla.options import OptionError


@dataclass(frozen=True)
class AtEnd:
    """The same end in every partition."""

    end: int  # EARLIEST or LATEST.


@dataclass(frozen=True)
class AtOffsets:
    offsets: Mapping[TopicPartition, int]  # May include EARLIEST and LATEST.
    option: str


@dataclass(frozen=True)
class AtTimes:
    """The first record at or after a time in milliseconds."""

    times: Mapping[TopicPartition, int] | None  # None: `everywhere` applies to all.
    everywhere: int | None
    option: str
    latest_if_none: bool  # If no record is that late: start at the end, or fail.


Position = AtEnd | AtOffsets | AtTimes


class NoRecordSoLate(Exception):
    """No record is at or after the requested start time."""


def resolve(
    cluster: Cluster,
    position: Position,
    partitions: Collection[TopicPartition],
    isolation: Isolation,
) -> dict[TopicPartition, int]:
    """The offset in each partition."""
    if isinstance(position, AtEnd):
        return _offsets_of_ends(cluster, dict.fromkeys(partitions, position.end), isolation)
    if isinstance(position, AtTimes):
        return _at_times(cluster, position, partitions, isolation)
    _validate_complete(position.offsets, partitions, position.option)
    symbolic = {
        partition: offset
        for partition, offset in position.offsets.items()
        if offset in (EARLIEST, LATEST)
    }
    return {**position.offsets, **_offsets_of_ends(cluster, symbolic, isolation)}


def first_offsets(
    cluster: Cluster,
    partitions: Iterable[TopicPartition],
    isolation: Isolation = Isolation.READ_UNCOMMITTED,
) -> dict[TopicPartition, int]:
    """Where each partition begins."""
    return _offsets_of_ends(cluster, dict.fromkeys(partitions, EARLIEST), isolation)


def last_offsets(
    cluster: Cluster,
    partitions: Iterable[TopicPartition],
    isolation: Isolation = Isolation.READ_UNCOMMITTED,
) -> dict[TopicPartition, int]:
    """Where each partition ends: the offset of its next record."""
    return _offsets_of_ends(cluster, dict.fromkeys(partitions, LATEST), isolation)


def _offsets_of_ends(
    cluster: Cluster, ends: Mapping[TopicPartition, int], isolation: Isolation
) -> dict[TopicPartition, int]:
    """For EARLIEST and LATEST, which every partition has."""
    found = list_offsets(cluster, ends, isolation)
    return {partition: offset or 0 for partition, offset in found.items()}


def _at_times(
    cluster: Cluster,
    position: AtTimes,
    partitions: Collection[TopicPartition],
    isolation: Isolation,
) -> dict[TopicPartition, int]:
    times = position.times
    if times is None:
        assert position.everywhere is not None
        times = dict.fromkeys(partitions, position.everywhere)
    _validate_complete(times, partitions, position.option)
    found = list_offsets(cluster, times, isolation)
    late = [partition for partition, offset in found.items() if offset is None]
    if late and not position.latest_if_none:
        raise NoRecordSoLate(
            f"{position.option}: no record is so late in {', '.join(map(str, sorted(late)))};"
            " startingOffsetsByTimestampStrategy=latest starts at the end there"
        )
    ends = last_offsets(cluster, late, isolation)
    return {
        partition: ends[partition] if offset is None else offset
        for partition, offset in found.items()
    }


def _validate_complete(
    given: Collection[TopicPartition], partitions: Collection[TopicPartition], option: str
) -> None:
    surplus, missing = set(given) - set(partitions), set(partitions) - set(given)
    if surplus:
        names = ", ".join(map(str, sorted(surplus)))
        raise OptionError(f"option {option} has {names}, which is not read or does not exist")
    if missing:
        names = ", ".join(map(str, sorted(missing)))
        raise OptionError(
            f"option {option} says nothing of {names}; -2 stands for earliest, -1 for latest"
        )
