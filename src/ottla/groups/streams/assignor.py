"""The sticky assignor: even, with the fewest possible moves, and one copy per process.

Active tasks go to the member that had them, then to one that had them as standby, as long as its
share is not full; the rest to the least loaded process, and within it to its least loaded member.
Standby copies are assigned in the same way, in processes that have no copy of the task.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.groups.streams.tasks import Task, TaskAssignment

NAME = "sticky"


class MemberSpec(NamedTuple):
    process_id: str
    previous: TaskAssignment


def assign_sticky(
    members: Mapping[str, MemberSpec], task_counts: Mapping[str, int], standby_count: int
) -> dict[str, TaskAssignment]:
    """The target of every member. `task_counts` are by subtopology."""
    if not members:
        return {}
    tasks = [
        Task(subtopology_id, partition)
        for subtopology_id, count in sorted(task_counts.items())
        for partition in range(count)
    ]
    return _Assignment(members).of(tasks, standby_count)


class _Assignment:
    def __init__(self, members: Mapping[str, MemberSpec]) -> None:
        self._members = members
        self._active: dict[str, set[Task]] = {member_id: set() for member_id in members}
        self._standby: dict[str, set[Task]] = {member_id: set() for member_id in members}
        self._load: Counter[str] = Counter(dict.fromkeys(members, 0))  # Copies per member.
        self._process_size = Counter(spec.process_id for spec in members.values())
        self._process_load: Counter[str] = Counter(dict.fromkeys(self._process_size, 0))
        self._processes_of: dict[Task, set[str]] = {}  # Processes with a copy.
        self._had_active = {
            task: member_id for member_id, spec in members.items() for task in spec.previous.active
        }
        self._had_standby: dict[Task, list[str]] = {}
        for member_id, spec in members.items():
            for task in spec.previous.standby:
                self._had_standby.setdefault(task, []).append(member_id)

    def of(self, tasks: list[Task], standby_count: int) -> dict[str, TaskAssignment]:
        self._assign_active(tasks)
        for _ in range(standby_count):
            self._assign_standby(tasks, standby_count)
        return {
            member_id: TaskAssignment(
                frozenset(self._active[member_id]), frozenset(self._standby[member_id])
            )
            for member_id in self._members
        }

    def _assign_active(self, tasks: list[Task]) -> None:
        share, spare = divmod(len(tasks), len(self._members))
        left = []
        for task in sorted(tasks, key=lambda task: (task.partition, task.subtopology_id)):
            member_id = self._first_below(self._known(task), share + bool(spare))
            if member_id is None:
                left.append(task)
                continue
            self._give(self._active, member_id, task)
            if spare and self._load[member_id] > share:
                spare -= 1
        for task in sorted(left):
            self._give(self._active, self._least_loaded(task), task)

    def _assign_standby(self, tasks: list[Task], standby_count: int) -> None:
        copies = len(tasks) * (1 + standby_count)
        share = -(-copies // len(self._members))
        for task in sorted(tasks, reverse=True):
            taken = self._processes_of[task]
            known = [member for member in self._known(task) if self._process(member) not in taken]
            member_id = self._first_below(known, share)
            if member_id is None and len(taken) < len(self._process_size):
                member_id = self._least_loaded(task)
            if member_id is not None:
                self._give(self._standby, member_id, task)

    def _known(self, task: Task) -> list[str]:
        """The members that have the state of the task, the formerly active one first."""
        had_active = self._had_active.get(task)
        first = [] if had_active is None else [had_active]
        return first + sorted(self._had_standby.get(task, ()), key=self._rank)

    def _first_below(self, members: Iterable[str], load_max: int) -> str | None:
        return next((member for member in members if self._load[member] < load_max), None)

    def _least_loaded(self, task: Task) -> str:
        taken = self._processes_of.get(task, set())
        return min(
            (member for member in self._members if self._process(member) not in taken),
            key=self._rank,
        )

    def _rank(self, member_id: str) -> tuple[float, int, str]:
        process_id = self._process(member_id)
        process_load = self._process_load[process_id] / self._process_size[process_id]
        return process_load, self._load[member_id], member_id

    def _process(self, member_id: str) -> str:
        return self._members[member_id].process_id

    def _give(self, copies: dict[str, set[Task]], member_id: str, task: Task) -> None:
        copies[member_id].add(task)
        self._load[member_id] += 1
        process_id = self._process(member_id)
        self._process_load[process_id] += 1
        self._processes_of.setdefault(task, set()).add(process_id)
