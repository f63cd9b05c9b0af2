"""Members join, share, leave and die, with every client and both protocols."""

from collections.abc import Callable
from functools import partial

import pytest
from tests.clients.confluent_client import ConfluentClient
from tests.clients.groups.conftest import committed, produce
from tests.clients.groups.member_process import SESSION_TIMEOUT_MS, start_member
from tests.clients.groups.members import (
    POLLERS,
    CommittingPoller,
    ConfluentPoller,
    Group,
    Member,
    Poller,
    Received,
    disjoint,
)
from tests.clients.test_group_configs import alter

ALL = {0, 1, 2, 3}
CONFLUENT = ("confluent", "confluent-consumer-protocol")


def test_one_member_gets_everything(group: Group, start: Callable[[], Poller]) -> None:
    member = group.join(start)
    group.wait_for(lambda: len(member.received) == 100)
    assert member.assigned == ALL
    assert member.offsets() == {partition: list(range(25)) for partition in ALL}


def test_the_next_member_goes_on_where_the_last_one_committed(
    group: Group, start: Callable[[], Poller], confluent: ConfluentClient, topic: str
) -> None:
    first = group.join(start)
    group.wait_for(lambda: len(first.received) == 100)
    first.commit()
    first.leave()
    produce(confluent, topic, 5)
    second = group.join(start)
    group.wait_for(lambda: len(second.received) >= 20)
    assert second.offsets() == {partition: list(range(25, 30)) for partition in ALL}


def test_what_was_not_committed_is_read_again(group: Group, start: Callable[[], Poller]) -> None:
    first = group.join(start)
    group.wait_for(lambda: len(first.received) == 100)
    first.leave()
    second = group.join(start)
    group.wait_for(lambda: len(second.received) >= 100)
    assert second.offsets() == first.offsets()


def test_partitions_are_shared_when_a_second_member_joins_and_leaves(
    group: Group, start: Callable[[], Poller]
) -> None:
    first = group.join(start)
    group.wait_for(lambda: first.assigned == ALL)
    second = group.join(start)
    group.wait_for(lambda: disjoint((first, second), 4))
    assert (len(first.assigned), len(second.assigned)) == (2, 2)
    second.leave()
    group.wait_for(lambda: first.assigned == ALL)


def test_more_members_than_partitions(group: Group, start: Callable[[], Poller]) -> None:
    members = [group.join(start) for _ in range(5)]

    def settled() -> bool:
        owned = [member.assigned for member in members]
        return sorted(map(len, owned)) == [0, 1, 1, 1, 1] and set().union(*owned) == ALL

    group.wait_for(settled)


def test_what_a_killed_member_had_goes_to_the_others(
    group: Group, client: str, bootstrap: str, group_id: str, topic: str, confluent: ConfluentClient
) -> None:
    alter(confluent.admin, group_id, consumer_session_timeout_ms=str(SESSION_TIMEOUT_MS))
    member = group.join(lambda: POLLERS[client](bootstrap, group_id, topic))
    group.wait_for(lambda: member.assigned == ALL)
    process = start_member(client, bootstrap, group_id, topic)
    try:
        assert process.stdout is not None
        assert process.stdout.readline(), "the process ended"
        group.wait_for(lambda: len(member.assigned) == 2)
    finally:
        process.kill()
        process.communicate()
    group.wait_for(lambda: member.assigned == ALL)


def test_topics_that_grow_are_shared_anew(
    group: Group, client: str, bootstrap: str, group_id: str, topic: str, confluent: ConfluentClient
) -> None:
    refresh = {"topic.metadata.refresh.interval.ms": 500} if "confluent" in client else {}
    if client in {"kafka-python", "aiokafka"}:
        refresh = {"metadata_max_age_ms": 500}
    member = group.join(lambda: POLLERS[client](bootstrap, group_id, topic, **refresh))
    group.wait_for(lambda: member.assigned == ALL)
    confluent.add_partitions(topic, 6)
    group.wait_for(lambda: member.assigned == {0, 1, 2, 3, 4, 5})


def test_a_cooperative_rebalance_takes_only_what_moves(
    group: Group, bootstrap: str, group_id: str, topic: str
) -> None:
    start = partial(
        ConfluentPoller,
        bootstrap,
        group_id,
        topic,
        **{"partition.assignment.strategy": "cooperative-sticky"},
    )
    first = group.join(start)
    group.wait_for(lambda: first.assigned == ALL)
    second = group.join(start)
    group.wait_for(lambda: disjoint((first, second), 4))
    assert _revoked(first) == [second.assigned]
    assert _revoked(second) == []


def test_a_static_member_comes_back_without_a_rebalance(
    group: Group, bootstrap: str, group_id: str, topic: str
) -> None:
    def start(instance: str) -> Callable[[], Poller]:
        return partial(
            ConfluentPoller, bootstrap, group_id, topic, **{"group.instance.id": instance}
        )

    first = group.join(start("first"))
    group.wait_for(lambda: first.assigned == ALL)
    second = group.join(start("second"))
    group.wait_for(lambda: disjoint((first, second), 4))
    had = second.assigned
    revocations = len(_revoked(first))
    second.leave()
    again = group.join(start("second"))
    group.wait_for(lambda: again.assigned == had)
    assert len(_revoked(first)) == revocations


def _revoked(member: Member) -> list[set[int]]:
    assert isinstance(member.poller, ConfluentPoller)
    return member.poller.revoked


@pytest.mark.parametrize("client", CONFLUENT)
def test_a_pattern_subscribes_to_topics(
    group: Group, client: str, bootstrap: str, group_id: str, topic: str
) -> None:
    member = group.join(partial(POLLERS[client], bootstrap, group_id, f"^{topic}$"))
    group.wait_for(lambda: len(member.received) == 100)
    assert member.assigned == ALL


@pytest.mark.parametrize("client", CONFLUENT)
def test_all_is_read_though_members_come_while_it_is(
    group: Group, client: str, bootstrap: str, group_id: str, topic: str, confluent: ConfluentClient
) -> None:
    produce(confluent, topic, 75)
    start = partial(POLLERS[client], bootstrap, group_id, topic)
    members = [group.join(lambda: CommittingPoller(start())) for _ in range(3)]

    def read() -> set[Received]:
        return {position for member in members for position in member.received}

    def offsets() -> set[int]:
        return {offset for offset, _ in committed(confluent, group_id).values()}

    group.wait_for(lambda: len(read()) == 400)
    group.wait_for(lambda: offsets() == {100})


def test_a_regular_expression_finds_topics_that_come_later(
    group: Group, bootstrap: str, group_id: str, confluent: ConfluentClient
) -> None:
    member = group.join(
        partial(POLLERS["confluent-consumer-protocol"], bootstrap, group_id, f"^{group_id}-.*")
    )
    confluent.create_topic(f"{group_id}-one", 1)
    group.wait_for(lambda: member.assigned == {0})
    confluent.create_topic(f"{group_id}-two", 3)
    group.wait_for(lambda: member.assigned == {0, 1, 2})
