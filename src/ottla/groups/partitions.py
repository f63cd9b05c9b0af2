"""Sets of partitions, named by topic id, as assignments are made of them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple
from uuid import UUID


class TopicIdPartition(NamedTuple):
    topic_id: UUID
    partition: int


Assignment = frozenset[TopicIdPartition]

NOTHING: Assignment = frozenset()


def assignment_of(topics: Iterable[tuple[UUID | None, Iterable[int]]]) -> Assignment:
    """A topic without an id names nothing."""
    return frozenset(
        TopicIdPartition(topic_id, partition)
        for topic_id, partitions in topics
        if topic_id is not None
        for partition in partitions
    )


def by_topic(assignment: Assignment) -> Mapping[UUID, tuple[int, ...]]:
    """Topics and the partitions of each in ascending order."""
    topics: dict[UUID, list[int]] = {}
    for topic_id, partition in sorted(assignment):
        topics.setdefault(topic_id, []).append(partition)
    return {topic_id: tuple(partitions) for topic_id, partitions in topics.items()}


def all_partitions(counts: Mapping[UUID, int]) -> Iterator[TopicIdPartition]:
    for topic_id, count in counts.items():
        for partition in range(count):
            yield TopicIdPartition(topic_id, partition)
