from uuid import UUID

import pytest

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.hot_fetch import FetchedPartition, FetchedTopic, FetchRequest, ForgottenTopic
from ottla.replication.fetch_sessions import FetchSessions

TOPIC_ID = UUID(int=7)


def request(
    session_id: int,
    epoch: int,
    *asked: tuple[str, int, int],
    forgotten: tuple[tuple[str, int], ...] = (),
) -> FetchRequest:
    topics = [
        FetchedTopic(topic, None, [FetchedPartition(partition, -1, offset, -1, -1, 1000)])
        for topic, partition, offset in asked
    ]
    forgets = [ForgottenTopic(topic, None, [partition]) for topic, partition in forgotten]
    return FetchRequest(-1, -1, 0, 1, 1000, 0, session_id, epoch, topics, forgets, "", None)


def fetched_partitions(wanted: object) -> list[tuple[object, int, int]]:
    assert isinstance(wanted, list)
    return [(item.topic, item.partition, item.asked.fetch_offset) for item in wanted]


@pytest.fixture
def sessions() -> FetchSessions:
    return FetchSessions(slots_max=2, first_id=10)


def test_a_request_without_a_session_is_taken_as_it_is(sessions: FetchSessions) -> None:
    session, wanted = sessions.resolve(request(0, -1, ("a", 0, 5)), by_id=False)
    assert session is None
    assert fetched_partitions(wanted) == [("a", 0, 5)]
    assert len(sessions) == 0


def test_later_requests_of_a_session_say_only_what_changed(sessions: FetchSessions) -> None:
    session, _ = sessions.resolve(request(0, 0, ("a", 0, 5), ("b", 1, 6)), by_id=False)
    assert session is not None
    _, wanted = sessions.resolve(request(session.id, 1, ("a", 0, 9), ("c", 2, 0)), by_id=False)
    assert fetched_partitions(wanted) == [("a", 0, 9), ("b", 1, 6), ("c", 2, 0)]
    _, wanted = sessions.resolve(request(session.id, 2, forgotten=(("b", 1),)), by_id=False)
    assert fetched_partitions(wanted) == [("a", 0, 9), ("c", 2, 0)]


def test_an_epoch_out_of_turn_is_refused(sessions: FetchSessions) -> None:
    session, _ = sessions.resolve(request(0, 0, ("a", 0, 5)), by_id=False)
    assert session is not None
    with pytest.raises(ApiError) as refused:
        sessions.resolve(request(session.id, 2), by_id=False)
    assert refused.value.code == ErrorCode.invalid_fetch_session_epoch


def test_an_unknown_session_is_refused(sessions: FetchSessions) -> None:
    with pytest.raises(ApiError) as refused:
        sessions.resolve(request(3, 1), by_id=False)
    assert refused.value.code == ErrorCode.fetch_session_id_not_found


def test_a_session_by_name_cannot_go_on_by_id(sessions: FetchSessions) -> None:
    session, _ = sessions.resolve(request(0, 0, ("a", 0, 5)), by_id=False)
    assert session is not None
    with pytest.raises(ApiError) as refused:
        sessions.resolve(request(session.id, 1), by_id=True)
    assert refused.value.code == ErrorCode.fetch_session_topic_id_error


def test_the_final_epoch_closes_the_session(sessions: FetchSessions) -> None:
    session, _ = sessions.resolve(request(0, 0, ("a", 0, 5)), by_id=False)
    assert session is not None
    ended, wanted = sessions.resolve(request(session.id, -1, ("a", 0, 7)), by_id=False)
    assert ended is None
    assert fetched_partitions(wanted) == [("a", 0, 7)]
    assert len(sessions) == 0


def test_the_least_recently_used_session_makes_room(sessions: FetchSessions) -> None:
    first, second = (sessions.resolve(request(0, 0, ("a", 0, 0)), by_id=False)[0] for _ in range(2))
    assert first is not None
    assert second is not None
    sessions.resolve(request(first.id, 1), by_id=False)
    sessions.resolve(request(0, 0, ("a", 0, 0)), by_id=False)
    assert len(sessions) == 2
    with pytest.raises(ApiError):
        sessions.resolve(request(second.id, 1), by_id=False)
    sessions.resolve(request(first.id, 2), by_id=False)


def test_partitions_that_were_served_wait_for_the_others(sessions: FetchSessions) -> None:
    session, wanted = sessions.resolve(request(0, 0, ("a", 0, 0), ("b", 0, 0)), by_id=False)
    assert session is not None
    session.served([wanted[0]])
    _, wanted = sessions.resolve(request(session.id, 1), by_id=False)
    assert fetched_partitions(wanted) == [("b", 0, 0), ("a", 0, 0)]


def test_topics_are_told_apart_by_id_in_new_versions(sessions: FetchSessions) -> None:
    topic = FetchedTopic("", TOPIC_ID, [FetchedPartition(0, -1, 3, -1, -1, 1000)])
    opening = request(0, 0)._replace(topics=[topic])
    _, wanted = sessions.resolve(opening, by_id=True)
    assert fetched_partitions(wanted) == [(TOPIC_ID, 0, 3)]
