from functools import partial
from uuid import UUID

import pytest

from ottla.groups.partitions import TopicIdPartition
from ottla.groups.share.sessions import EPOCH_MAX, SessionKey, ShareSessions
from ottla.protocol.errors import ApiError, ErrorCode

KEY = SessionKey("g", "m")
T0, T1 = (TopicIdPartition(UUID(int=1), index) for index in range(2))


def refusal(operation) -> ErrorCode:  # type: ignore[no-untyped-def]
    with pytest.raises(ApiError) as refused:
        operation()
    return refused.value.code


def test_epochs_count_up_and_wrap() -> None:
    sessions = ShareSessions(10)
    session = sessions.open(KEY, "connection")

    assert sessions.advance(KEY, 1) is session
    for epoch in (0, 1, 3):
        code = refusal(partial(sessions.advance, KEY, epoch))
        assert code is ErrorCode.invalid_share_session_epoch
    session.epoch = EPOCH_MAX
    assert sessions.advance(KEY, 1).epoch == 1


def test_a_closed_session_is_not_found() -> None:
    sessions = ShareSessions(10)
    session = sessions.open(KEY, "connection")

    assert sessions.has(session)
    assert sessions.close(KEY) is session
    assert not sessions.has(session)
    assert refusal(lambda: sessions.close(KEY)) is ErrorCode.share_session_not_found
    assert refusal(lambda: sessions.advance(KEY, 1)) is ErrorCode.share_session_not_found


def test_a_session_that_was_opened_anew_outlives_the_old_connection() -> None:
    sessions = ShareSessions(10)
    sessions.open(KEY, "old")
    new = sessions.open(KEY, "new")

    assert sessions.knows_owner("old")
    assert sessions.on_owner_gone("old") == []
    assert not sessions.knows_owner("old")
    assert sessions.advance(KEY, 1) is new
    assert sessions.on_owner_gone("new") == [new]
    assert len(sessions) == 0


def test_a_fetch_that_waits_ends_with_its_session() -> None:
    sessions = ShareSessions(10)
    ended: list[str] = []

    def open_session(owner: str) -> None:
        sessions.open(KEY, owner).abandon = lambda: ended.append(owner)

    open_session("replaced")
    open_session("closed")
    assert ended == ["replaced"]
    sessions.close(KEY)
    open_session("gone")
    sessions.on_owner_gone("gone")
    assert ended == ["replaced", "closed", "gone"]


def test_the_number_of_sessions_is_bounded() -> None:
    sessions = ShareSessions(1)
    sessions.open(KEY, None)
    sessions.open(KEY, None)

    other = SessionKey("g", "other")
    assert refusal(lambda: sessions.open(other, None)) is ErrorCode.share_session_limit_reached


def test_partitions_take_turns() -> None:
    session = ShareSessions(1).open(KEY, None)
    session.update([T0, T1], [])
    session.served([T0])
    assert list(session.partitions) == [T1, T0]
    session.update([T0], [T1])
    assert list(session.partitions) == [T0]
