"""Offset ranges: what one task reads, and how much a micro-batch takes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pyspark.sql.datasource import InputPartition

from ottla.client.wire.cluster import TopicPartition


@dataclass(frozen=True)
class OffsetRange(InputPartition):
    """The records of one partition in [start, end)."""

    topic: str
    partition: int
    start: int
    end: int  # Invariant: > start.
    topic_id: str | None  # Of the planned topic; a recreated topic has another.

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True)
class OffsetRanges(InputPartition):
    """Ranges of several partitions, read one after another by one task."""

    ranges: tuple[OffsetRange, ...]


def ranges_in(partition: InputPartition) -> tuple[OffsetRange, ...]:
    """The ranges that one task reads."""
    assert isinstance(partition, OffsetRange | OffsetRanges)
    return partition.ranges if isinstance(partition, OffsetRanges) else (partition,)


def join_ranges(
    ranges: Sequence[OffsetRange], offsets_max: int
) -> list[OffsetRange | OffsetRanges]:
    """Group neighbours up to `offsets_max` offsets in total; larger ranges stay alone."""
    groups: list[list[OffsetRange]] = []
    total = 0
    for item in ranges:
        size = item.end - item.start
        if not groups or total + size > offsets_max:
            groups.append([])
            total = 0
        groups[-1].append(item)
        total += size
    return [group[0] if len(group) == 1 else OffsetRanges(tuple(group)) for group in groups]


def split_ranges(ranges: Sequence[OffsetRange], count_min: int | None) -> list[OffsetRange]:
    """At least `count_min` ranges if there are enough offsets; large ranges are split evenly."""
    total = sum(item.end - item.start for item in ranges)
    if count_min is None or len(ranges) >= count_min:
        return list(ranges)
    parts = []
    for item in ranges:
        size = item.end - item.start
        share = min(size, max(1, math.ceil(size / total * count_min)))
        edges = [item.start + size * index // share for index in range(share + 1)]
        parts += [
            OffsetRange(item.topic, item.partition, start, end, item.topic_id)
            for start, end in pairwise(edges)
        ]
    return parts


def limit_offsets(
    starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], rows_max: int
) -> dict[TopicPartition, int]:
    """Ends with about `rows_max` offsets before them, shared out in proportion.

    A partition with anything to read advances by at least one, so that none starves.
    """
    sizes = {partition: max(0, end - starts[partition]) for partition, end in ends.items()}
    total = sum(sizes.values())
    if total <= rows_max:
        return dict(ends)
    limited = {}
    for partition, end in ends.items():
        share = rows_max * sizes[partition] / total
        rows = math.ceil(share) if share < 1 else math.floor(share)
        limited[partition] = min(end, starts[partition] + rows)
    return limited
