from typing import Any

import pytest
from tests.kits.manual_timers import ManualTimers

from ottla.controller.broker_sessions import BrokerSessions
from ottla.machine.result import Deferred, Result

TIMEOUT_MS = 1000


class Kit:
    def __init__(self) -> None:
        self.timers = ManualTimers()
        self.expired: list[tuple[int, int]] = []
        self.sessions = BrokerSessions(TIMEOUT_MS, self.timers, self.on_expired)

    def on_expired(self, broker_id: int, now_ms: int, cause: str) -> Result[Any]:
        self.cause = cause
        self.expired.append((broker_id, now_ms))
        return Result(None)

    def touch(self, broker_id: int, metadata_offset: int, now_ms: int) -> None:
        """A heartbeat that is answered at once."""
        self.touch_unanswered(broker_id, metadata_offset, now_ms).settle("answer")

    def touch_unanswered(self, broker_id: int, metadata_offset: int, now_ms: int) -> Deferred[Any]:
        answer: Deferred[Any] = Deferred()
        self.sessions.touch(broker_id, metadata_offset, answer, now_ms)
        return answer

    def fire(self, now_ms: int) -> Result[Any] | None:
        due = self.timers.pop_due(now_ms)
        return due and due[1](now_ms)


@pytest.fixture
def kit() -> Kit:
    return Kit()


def test_a_session_expires_a_timeout_after_the_last_heartbeat(kit: Kit) -> None:
    kit.touch(1, 0, 0)
    kit.touch(1, 0, 500)
    assert kit.fire(1499) is None
    kit.fire(1500)
    assert kit.expired == [(1, 1500)]
    assert not kit.sessions.is_alive(1)


def test_a_broker_that_was_never_heard_has_a_session_but_is_not_alive(kit: Kit) -> None:
    kit.sessions.await_first(1, 0)
    assert not kit.sessions.is_alive(1)
    assert kit.fire(665) is None
    kit.fire(666)
    assert kit.expired == [(1, 666)]


def test_a_broker_whose_connection_ended_has_less_time(kit: Kit) -> None:
    kit.touch(1, 0, 0)
    kit.sessions.suspect(1, 100)
    assert kit.fire(499) is None
    kit.fire(500)
    assert kit.expired == [(1, 500)]


def test_a_suspicion_never_gives_more_time(kit: Kit) -> None:
    kit.touch(1, 0, 0)
    kit.sessions.suspect(1, 900)
    kit.fire(1000)
    assert kit.expired == [(1, 1000)]


def test_a_heartbeat_ends_a_suspicion(kit: Kit) -> None:
    kit.touch(1, 0, 0)
    kit.sessions.suspect(1, 100)
    kit.touch(1, 0, 300)
    assert kit.fire(1299) is None


def test_who_was_not_heard_is_not_suspected(kit: Kit) -> None:
    kit.sessions.suspect(1, 100)
    assert kit.timers.deadlines == {}


def test_an_expiry_that_comes_late_waits_for_heartbeats_that_were_not_read(kit: Kit) -> None:
    kit.touch(1, 0, 0)
    kit.fire(1101)
    assert kit.expired == []
    assert kit.sessions.is_alive(1)
    kit.fire(1351)
    assert kit.expired == [(1, 1351)]


def test_a_forgotten_session_does_not_expire(kit: Kit) -> None:
    kit.touch(1, 0, 0)
    kit.sessions.forget(1)
    assert kit.fire(5000) is None
    assert not kit.sessions.is_alive(1)


def test_a_shutdown_is_known_when_all_others_have_read_so_far(kit: Kit) -> None:
    kit.touch(1, 0, 0)
    kit.touch(2, 9, 0)
    kit.sessions.set_shutdown_offset(1, 10)
    assert not kit.sessions.is_shutdown_known(1, [2])
    assert not kit.sessions.is_shutdown_known(1, [2, 3])
    kit.touch(2, 10, 0)
    assert kit.sessions.is_shutdown_known(1, [2])
    assert not kit.sessions.is_shutdown_known(1, [2, 3])
    assert kit.sessions.is_shutdown_known(1, [])


def test_a_broker_that_waits_for_an_answer_is_not_silent(kit: Kit) -> None:
    answer = kit.touch_unanswered(1, 0, 0)
    for now_ms in (1000, 2000, 3000):
        kit.fire(now_ms)
    answer.settle("answer")
    kit.fire(4000)
    assert kit.expired == []  # It may have received the response only now.
    kit.fire(5000)
    assert kit.expired == [(1, 5000)]


def test_a_heartbeat_after_a_late_answer_begins_a_session_as_any_other(kit: Kit) -> None:
    kit.touch_unanswered(1, 0, 0)
    kit.fire(1000)
    kit.touch(1, 0, 1500)
    assert kit.fire(2499) is None
    kit.fire(2500)
    assert kit.expired == [(1, 2500)]
