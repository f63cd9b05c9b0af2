"""A consumer group whose target assignment may be older than the group (KIP-1263)."""

from dataclasses import replace

from kio.schema.consumer_group_describe.v1.response import DescribedGroup
from tests.groups.kit import Coordinator, subscription

from ottla.groups.consumer.config import MEMBERSHIP, ConsumerConfig
from ottla.protocol.errors import ErrorCode

ALL_OF_T = {("t", partition) for partition in range(4)}
WAIT_MS = 1_000
# Otherwise so few members and partitions would not have to wait.
SLOW = replace(
    MEMBERSHIP.default_pace,
    assignment_interval_ms=WAIT_MS,
    assignment_us_each=1_000_000,
    assignment_waits_above=0,
)


def new_coordinator() -> Coordinator:
    return Coordinator(consumer=ConsumerConfig(pace=SLOW))


def epochs(coordinator: Coordinator) -> tuple[str, int, int]:
    """The group's state, its epoch and its target's epoch."""
    (group,) = coordinator.run(lambda _: coordinator.machine.describe_consumer_groups(["g"])).value
    assert isinstance(group, DescribedGroup)
    return group.group_state, group.group_epoch, group.assignment_epoch


def test_many_that_join_get_one_target() -> None:
    coordinator = new_coordinator()
    assert coordinator.assigned(coordinator.beat("a")) == ALL_OF_T

    for name in ("b", "c", "d"):
        joined = coordinator.beat(name)
        assert (joined.member_epoch, coordinator.assigned(joined)) == (2, set())
    assert epochs(coordinator) == ("Assigning", 5, 2)

    coordinator.advance(WAIT_MS - 1)
    coordinator.beat("b", 2)
    assert coordinator.last_records == ()
    coordinator.advance(1)
    assert coordinator.beat("b", 2).member_epoch == 5
    assert epochs(coordinator) == ("Reconciling", 5, 5)


def test_a_coordinator_that_takes_over_waits_no_longer_than_the_one_before() -> None:
    coordinator = new_coordinator()
    coordinator.beat("a")
    coordinator.beat("b")
    coordinator.advance(WAIT_MS - 1)

    coordinator.reload()

    assert coordinator.beat("b", 2).member_epoch == 2
    coordinator.advance(1)
    assert coordinator.beat("b", 2).member_epoch == 3


def test_what_a_member_left_behind_waits_for_the_next_target() -> None:
    coordinator = new_coordinator()
    coordinator.beat("a")
    coordinator.beat("a", -1)

    assert coordinator.assigned(coordinator.beat("b")) == set()
    coordinator.advance(WAIT_MS)
    assert coordinator.assigned(coordinator.beat("b", 2)) == ALL_OF_T


def test_a_member_gives_up_what_it_unsubscribed_from_before_the_next_target() -> None:
    coordinator = new_coordinator()
    both = coordinator.beat("a", topics=("t", "u"))
    owned = coordinator.assigned(both)
    assert owned == ALL_OF_T | {("u", 0), ("u", 1)}

    response = coordinator.beat("a", 2, topics=("u",), owned=owned, rebalance_ms=60_000)
    assert (response.member_epoch, coordinator.assigned(response)) == (2, {("u", 0), ("u", 1)})
    still = coordinator.beat("a", 2, owned=owned)
    assert coordinator.assigned(still) is None
    done = coordinator.beat("a", 2, owned={("u", 0), ("u", 1)})
    assert done.member_epoch == 2
    assert epochs(coordinator) == ("Assigning", 3, 2)

    coordinator.advance(WAIT_MS)
    assert coordinator.beat("a", 2).member_epoch == 3
    assert epochs(coordinator) == ("Stable", 3, 3)


def test_partitions_that_were_added_wait_for_the_next_target() -> None:
    coordinator = new_coordinator()
    coordinator.beat("a")
    coordinator.catalog.topics["t"] = (coordinator.catalog.topics["t"][0], 5)
    coordinator.catalog.topics_version += 1

    assert coordinator.assigned(coordinator.beat("a", 2)) is None
    assert epochs(coordinator) == ("Assigning", 3, 2)
    coordinator.advance(WAIT_MS)
    assert coordinator.assigned(coordinator.beat("a", 2)) == ALL_OF_T | {("t", 4)}


def test_classic_members_rejoin_only_for_a_newer_target() -> None:
    coordinator = new_coordinator()
    coordinator.beat("new")
    old = coordinator.join("old", protocols={"range": subscription("t")}, version=3).value
    assert old.generation_id == 2
    assert coordinator.sync("old", 2).value.error_code is ErrorCode.none
    assert coordinator.heartbeat("old", 2).error_code is ErrorCode.none

    coordinator.advance(WAIT_MS)

    assert coordinator.heartbeat("old", 2).error_code is ErrorCode.rebalance_in_progress
    assert coordinator.join("old", version=3).value.generation_id == 3
    assert coordinator.beat("new", 2).member_epoch == 2  # It must give up half first.
