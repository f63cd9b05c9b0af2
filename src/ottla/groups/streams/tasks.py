"""Tasks of a Streams application, and their roles.

A task is a part of the topology (a subtopology) for one partition of its source topics. Its active
copy processes records; standby copies keep its state warm elsewhere; a warm-up copy is a standby
about to become active.
"""

from collections.abc import Iterable, Mapping
from operator import and_, or_, sub
from typing import NamedTuple

from ottla.protocol.lazy_dataclass import dataclass


class Task(NamedTuple):
    subtopology_id: str
    partition: int


Tasks = frozenset[Task]

NO_TASKS: Tasks = frozenset()


@dataclass(frozen=True, slots=True)
class TaskAssignment:
    """A set of copies of tasks, each in its role."""

    active: Tasks = NO_TASKS
    standby: Tasks = NO_TASKS
    warmup: Tasks = NO_TASKS

    @property
    def roles(self) -> tuple[Tasks, Tasks, Tasks]:
        return self.active, self.standby, self.warmup

    @property
    def all(self) -> Tasks:
        return self.active | self.standby | self.warmup

    def __len__(self) -> int:
        return sum(map(len, self.roles))

    def __and__(self, other: "TaskAssignment") -> "TaskAssignment":
        return TaskAssignment(*map(and_, self.roles, other.roles))

    def __or__(self, other: "TaskAssignment") -> "TaskAssignment":
        return TaskAssignment(*map(or_, self.roles, other.roles))

    def __sub__(self, other: "TaskAssignment") -> "TaskAssignment":
        return TaskAssignment(*map(sub, self.roles, other.roles))

    def __le__(self, other: "TaskAssignment") -> bool:
        return not self - other

    def isdisjoint(self, other: "TaskAssignment") -> bool:
        return not self & other


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
