"""Sets of partitions, identified by topic id, that make up assignments."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import repeat
from typing import NamedTuple
from uuid import UUID


class TopicIdPartition(NamedTuple):
    topic_id: UUID
    partition: int


Assignment = frozenset[TopicIdPartition]

NOTHING: Assignment = frozenset()


def assignment_of(topics: Iterable[tuple[UUID | None, Iterable[int]]]) -> Assignment:
    """Skips topics without an id."""
    found: set[TopicIdPartition] = set()
    for topic_id, partitions in topics:
        if topic_id is not None:
            found.update(_of_topic(topic_id, partitions))
    return frozenset(found)


def by_topic(assignment: Assignment) -> Mapping[UUID, tuple[int, ...]]:
    """Topics with their partitions, sorted."""
    topics: dict[UUID, list[int]] = {}
    last: UUID | None = None
    for topic_id, partition in sorted(assignment):
        if topic_id is not last:
            last = topic_id
            partitions = topics.setdefault(topic_id, [])
        partitions.append(partition)
    return {topic_id: tuple(partitions) for topic_id, partitions in topics.items()}


def all_partitions(counts: Mapping[UUID, int]) -> Iterator[TopicIdPartition]:
    for topic_id, count in counts.items():
        yield from _of_topic(topic_id, range(count))


def _of_topic(topic_id: UUID, partitions: Iterable[int]) -> Iterator[TopicIdPartition]:
    """Large groups have many: this is several times as fast as one call for each."""
    return map(partial(tuple.__new__, TopicIdPartition), zip(repeat(topic_id), partitions))
