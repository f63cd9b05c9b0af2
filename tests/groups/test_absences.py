"""A dead member leaves its group even if its coordinators die too."""

from collections.abc import Callable

import pytest
from tests.groups.kit import Coordinator
from tests.groups.share import test_heartbeat as share

from ottla.groups.absences import INTERVAL_MS, AbsenceKey, AbsenceValue, AbsentMember
from ottla.machine.record import Record
from ottla.protocol.errors import ErrorCode

SESSION_MS = 45_000  # The session timeout of all members.

Beat = Callable[[], object]


def classic_group() -> tuple[Coordinator, Beat]:
    """Members a and b; the heartbeat of a."""
    coordinator = Coordinator()
    first = coordinator.join(version=3, session_ms=SESSION_MS)
    second = coordinator.join(version=3, session_ms=SESSION_MS)
    coordinator.advance(3_000)
    coordinator.sync(first.value.member_id, 1, {})
    coordinator.sync(second.value.member_id, 1)
    member_id, generation = first.value.member_id, 1

    def beat() -> None:
        nonlocal generation
        answer = coordinator.heartbeat(member_id, generation)
        if answer.error_code is ErrorCode.rebalance_in_progress:
            generation = coordinator.join(member_id, session_ms=SESSION_MS).value.generation_id
            coordinator.sync(member_id, generation, {})

    return coordinator, beat


def consumer_group() -> tuple[Coordinator, Beat]:
    coordinator = Coordinator()
    coordinator.beat("a")
    coordinator.beat("b")
    return coordinator, lambda: coordinator.beat("a", 2)


def share_group() -> tuple[Coordinator, Beat]:
    coordinator, epochs = share.joined("a", "b")
    return coordinator, lambda: share.beat(coordinator, "a", epochs["a"])


GROUPS = pytest.mark.parametrize("begin", [classic_group, consumer_group, share_group])


def sessions(coordinator: Coordinator) -> int:
    return sum("session" in name for name in coordinator.timers.names())


def live_through(coordinator: Coordinator, beat: Beat) -> None:
    """The only living member finds the coordinator after two seconds."""
    coordinator.advance(2_000)
    beat()
    coordinator.advance(INTERVAL_MS - 1_000)
    beat()
    coordinator.advance(1_000)


@GROUPS
def test_a_dead_member_is_removed_by_one_of_many_coordinators(
    begin: Callable[[], tuple[Coordinator, Beat]],
) -> None:
    coordinator, beat = begin()
    failovers = 0
    while True:
        coordinator.reload()
        if sessions(coordinator) == 1:
            break
        failovers += 1
        assert failovers <= 6
        live_through(coordinator, beat)
    assert failovers >= 4  # Before, it got a whole new session.


@GROUPS
def test_nothing_is_written_of_members_that_come_back(
    begin: Callable[[], tuple[Coordinator, Beat]],
) -> None:
    coordinator, _ = begin()
    coordinator.reload()
    left = {timer.rsplit("/", 1)[-1] for timer in coordinator.timers.names() if "session" in timer}
    absences = coordinator.machine._state.absences
    for member_id in left:
        absences.end("g", member_id)

    assert not any(
        isinstance(record, Record) and isinstance(record.key, AbsenceKey)
        for record in coordinator.advance(INTERVAL_MS)
    )
    assert "absences" not in coordinator.timers.names()


def test_who_is_heard_of_again_is_struck_off() -> None:
    coordinator, beat = consumer_group()
    coordinator.reload()
    absent = tuple(
        AbsentMember(member_id=name, left_ms=SESSION_MS - INTERVAL_MS) for name in ("a", "b")
    )
    assert coordinator.advance(INTERVAL_MS) == [
        Record(AbsenceKey(group_id="g"), AbsenceValue(members=absent))
    ]
    beat()
    coordinator.beat("b", 3)

    assert coordinator.advance(INTERVAL_MS) == [Record(AbsenceKey(group_id="g"), None)]
    coordinator.reload()
    assert (
        coordinator.timers.deadlines["consumer/session/g/a"][0] == coordinator.now_ms + SESSION_MS
    )


def test_a_long_session_is_not_written_about_all_the_time() -> None:
    coordinator = Coordinator()
    first = coordinator.join(version=3, session_ms=30 * 60_000)
    coordinator.advance(3_000)
    coordinator.sync(first.value.member_id, 1, {})
    coordinator.reload()

    assert len(coordinator.advance(25 * 60_000)) < 10
