"""Stretches of partitions: what one task reads, and how much of all a micro-batch takes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pyspark.sql.datasource import InputPartition

from ottla.client.wire.cluster import TopicPartition


@dataclass(frozen=True)
class OffsetRange(InputPartition):
    """The records of one partition from `start` on and before `end`."""

    topic: str
    partition: int
    start: int
    end: int  # Invariant: > start.
    topic_id: str | None  # Of the topic that was meant; one made again has another.

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True)
class OffsetRanges(InputPartition):
    """Of several partitions, which one task reads one after the other."""

    ranges: tuple[OffsetRange, ...]


def ranges_in(partition: InputPartition) -> tuple[OffsetRange, ...]:
    """What one task reads."""
    assert isinstance(partition, OffsetRange | OffsetRanges)
    return partition.ranges if isinstance(partition, OffsetRanges) else (partition,)


def join_ranges(
    ranges: Sequence[OffsetRange], offsets_max: int
) -> list[OffsetRange | OffsetRanges]:
    """Neighbours together, as long as they have so few offsets; larger ones stay alone."""
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
    """At least so many, if there are so many offsets; large ranges are cut into even parts."""
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
    """Ends so that about `rows_max` offsets lie before them, each partition by its share.

    A partition with anything to read moves by one at least, so that none waits for ever.
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
