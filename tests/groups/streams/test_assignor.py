"""The sticky assignor, for any group."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from ottla.groups.streams.assignor import MemberSpec, assign_sticky
from ottla.groups.streams.tasks import NOTHING, Task, TaskAssignment

PROCESSES = st.dictionaries(
    st.sampled_from("abcdefgh"), st.sampled_from(["p", "q", "r"]), min_size=1
)
TASK_COUNTS = st.dictionaries(st.sampled_from(["0", "1", "2"]), st.integers(1, 7), min_size=1)


def specs(
    processes: dict[str, str], previous: dict[str, TaskAssignment] | None = None
) -> dict[str, MemberSpec]:
    return {
        member_id: MemberSpec(process_id, (previous or {}).get(member_id, NOTHING))
        for member_id, process_id in processes.items()
    }


def all_tasks(task_counts: dict[str, int]) -> list[Task]:
    return [Task(name, index) for name, count in task_counts.items() for index in range(count)]


@given(PROCESSES, TASK_COUNTS, st.integers(0, 2))
def test_every_task_is_active_once_and_no_process_has_two_copies(
    processes: dict[str, str], task_counts: dict[str, int], standby_count: int
) -> None:
    assigned = assign_sticky(specs(processes), task_counts, standby_count)
    active = Counter(task for tasks in assigned.values() for task in tasks.active)
    assert active == Counter(all_tasks(task_counts))
    copies = Counter(
        (processes[member_id], task)
        for member_id, tasks in assigned.items()
        for task in (*tasks.active, *tasks.standby)
    )
    assert set(copies.values()) == {1}
    possible = min(standby_count, len(set(processes.values())) - 1)
    standby = Counter(task for tasks in assigned.values() for task in tasks.standby)
    assert all(standby[task] == possible for task in all_tasks(task_counts))


@given(PROCESSES, TASK_COUNTS)
def test_threads_of_equal_processes_differ_by_one_task(
    processes: dict[str, str], task_counts: dict[str, int]
) -> None:
    alone = {member_id: member_id for member_id in processes}
    assigned = assign_sticky(specs(alone), task_counts, 0)
    loads = [len(tasks.active) for tasks in assigned.values()]
    assert max(loads) - min(loads) <= 1


@given(PROCESSES, TASK_COUNTS, st.integers(0, 2))
def test_nothing_moves_without_a_reason(
    processes: dict[str, str], task_counts: dict[str, int], standby_count: int
) -> None:
    alone = {member_id: member_id for member_id in processes}
    first = assign_sticky(specs(alone), task_counts, standby_count)
    again = assign_sticky(specs(alone, first), task_counts, standby_count)
    assert {name: tasks.active for name, tasks in again.items()} == {
        name: tasks.active for name, tasks in first.items()
    }


def test_who_leaves_takes_only_its_own_tasks_with_it() -> None:
    three = dict(zip("abc", "pqr", strict=True))
    before = assign_sticky(specs(three), {"0": 6}, 0)
    after = assign_sticky(specs({"a": "p", "b": "q"}, before), {"0": 6}, 0)
    assert before["a"].active < after["a"].active
    assert before["b"].active < after["b"].active


def test_a_standby_takes_over() -> None:
    two = {"a": "p", "b": "q"}
    before = assign_sticky(specs(two), {"0": 2}, 1)
    (lost,) = before["b"].active
    assert lost in before["a"].standby
    three = {"a": "p", "c": "r", "d": "s"}
    after = assign_sticky(specs(three, before), {"0": 2}, 1)
    assert after["a"].active == before["a"].active
