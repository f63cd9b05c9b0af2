"""Tasks of a Streams application, and their roles.

A task is a part of the topology (a subtopology) for one partition of its source topics. Its active
copy processes records; standby copies keep its state warm elsewhere; a warm-up copy is a standby
about to become active.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Task(NamedTuple):
    subtopology_id: str
    partition: int


Tasks = frozenset[Task]

NO_TASKS: Tasks = frozenset()


class TaskAssignment(NamedTuple):
    active: Tasks = NO_TASKS
    standby: Tasks = NO_TASKS
    warmup: Tasks = NO_TASKS

    @property
    def all(self) -> Tasks:
        return self.active | self.standby | self.warmup

    def __and__(self, other: "TaskAssignment") -> "TaskAssignment":
        return TaskAssignment(*(ours & theirs for ours, theirs in zip(self, other, strict=True)))

    def __or__(self, other: "TaskAssignment") -> "TaskAssignment":
        return TaskAssignment(*(ours | theirs for ours, theirs in zip(self, other, strict=True)))

    def __sub__(self, other: "TaskAssignment") -> "TaskAssignment":
        return TaskAssignment(*(ours - theirs for ours, theirs in zip(self, other, strict=True)))

    def meets(self, other: "TaskAssignment") -> bool:
        """Whether both have some task in the same role."""
        return any(not ours.isdisjoint(theirs) for ours, theirs in zip(self, other, strict=True))

    def is_within(self, other: "TaskAssignment") -> bool:
        return all(ours <= theirs for ours, theirs in zip(self, other, strict=True))


NOTHING = TaskAssignment()


def tasks_of(subtopologies: Iterable[tuple[str, Iterable[int]]]) -> Tasks:
    return frozenset(
        Task(subtopology_id, partition)
        for subtopology_id, partitions in subtopologies
        for partition in partitions
    )


def by_subtopology(tasks: Iterable[Task]) -> Mapping[str, tuple[int, ...]]:
    """Subtopologies with their partitions, sorted."""
    found: dict[str, list[int]] = {}
    for subtopology_id, partition in sorted(tasks):
        found.setdefault(subtopology_id, []).append(partition)
    return {subtopology_id: tuple(partitions) for subtopology_id, partitions in found.items()}
