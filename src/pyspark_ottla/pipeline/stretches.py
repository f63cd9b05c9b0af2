"""Offset ranges by source and partition: what is wanted, what is covered, and the rest."""

import math
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from ottla.client.wire.cluster import TopicPartition
from pyspark_ottla.stream_offsets import Offsets

ENDLESS = 2**63 - 1  # The end of what a running query will read.


class Stretch(NamedTuple):
    """The offsets in [start, end)."""

    source: str
    topic: str
    partition: int
    start: int
    end: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def length(self) -> int:
        return self.end - self.start

    def __str__(self) -> str:
        end = "on" if self.end == ENDLESS else f"to {self.end - 1}"
        return f"{self.topic_partition} {self.start} {end}"


def between(source: str, starts: Offsets, ends: Offsets) -> list[Stretch]:
    """For the partitions in both."""
    return [
        Stretch(source, *each, starts[each], ends[each])
        for each in sorted(starts)
        if starts[each] < ends.get(each, 0)
    ]


def subtract(wanted: Collection[Stretch], covered: Collection[Stretch]) -> list[Stretch]:
    left = list(wanted)
    for other in covered:
        left = [part for each in left for part in _without(each, other)]
    return left


def overlap(wanted: Collection[Stretch], covered: Collection[Stretch]) -> list[Stretch]:
    """The parts of what is wanted that are covered."""
    return subtract(wanted, subtract(wanted, covered))


def _without(stretch: Stretch, other: Stretch) -> Iterator[Stretch]:
    if stretch[:3] != other[:3]:
        yield stretch
        return
    before = stretch._replace(end=min(stretch.end, other.start))
    after = stretch._replace(start=max(stretch.start, other.end))
    if before.start < before.end:
        yield before
    if after.start < after.end:
        yield after


def portions(stretches: Collection[Stretch], records_max: int) -> Iterator[list[Stretch]]:
    """Consecutive portions of about `records_max` offsets, with all partitions in proportion.

    Deterministic: a portion is identified by its number.
    """
    waiting: dict[tuple[Any, ...], list[Stretch]] = {}
    for each in sorted(stretches):
        waiting.setdefault(each[:3], []).append(each)
    while waiting:
        total = sum(each.length for parts in waiting.values() for each in parts)
        portion = []
        for name, parts in list(waiting.items()):
            share = records_max * sum(each.length for each in parts) / total
            taken, left = _split(parts[0], max(1, math.floor(share)))
            portion.append(taken)
            waiting[name] = [*left, *parts[1:]]
            if not waiting[name]:
                del waiting[name]
        yield portion


def _split(stretch: Stretch, count: int) -> tuple[Stretch, list[Stretch]]:
    if stretch.length <= count:
        return stretch, []
    middle = stretch.start + count
    return stretch._replace(end=middle), [stretch._replace(start=middle)]
