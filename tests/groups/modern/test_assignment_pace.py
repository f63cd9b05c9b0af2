"""When a group gets its next target assignment, and its heartbeat interval."""

from dataclasses import replace
from uuid import UUID

import pytest

from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import ConsumerMember
from ottla.groups.modern.assignment_pace import Pace
from ottla.groups.modern.group import FIRST_EPOCH
from ottla.groups.partitions import NOTHING, all_partitions

PACE = Pace(
    assignment_interval_ms=1_000, heartbeat_interval_ms=5_000, rebalance_heartbeat_interval_ms=200
)
ASSIGNED_MS = 1_000_000


def group_of(member_count: int, *, epoch: int = 2, assignment_epoch: int = 1) -> ConsumerGroup:
    """A group whose last target was made at ASSIGNED_MS."""
    group = ConsumerGroup("g")
    for index in range(member_count):
        group.replay(group.member_record(ConsumerMember(member_id=f"m{index}")))
    group.replay(group.epoch_record(epoch, 0))
    group.replay(group.assignment_epoch_record(assignment_epoch, ASSIGNED_MS))
    return group


@pytest.mark.parametrize(
    ("member_count", "wait_ms"),
    [(1, 0), (100, 0), (110, 11), (1_000, 100), (20_000, 1_000)],
)
def test_a_target_waits_for_more_changes_as_long_as_the_group_is_large(
    member_count: int, wait_ms: int
) -> None:
    group = group_of(member_count)

    assert PACE.is_target_due(group, ASSIGNED_MS + wait_ms)
    assert not wait_ms or not PACE.is_target_due(group, ASSIGNED_MS + wait_ms - 1)


def test_partitions_count_as_much_as_members() -> None:
    group = group_of(10)
    partitions = frozenset(all_partitions({UUID(int=1): 200}))
    group.replay(group.target_record("m0", partitions))
    group.replay(group.target_record("m1", partitions))
    group.replay(group.target_record("m1", NOTHING))

    assert PACE.is_target_due(group, ASSIGNED_MS + 21)
    assert not PACE.is_target_due(group, ASSIGNED_MS + 20)


def test_a_target_that_is_up_to_date_is_not_due() -> None:
    group = group_of(3, epoch=2, assignment_epoch=2)

    assert not PACE.is_target_due(group, ASSIGNED_MS + 60_000)


def test_the_first_target_is_due_at_once() -> None:
    group = group_of(1_000)
    group.replay(group.assignment_epoch_record(FIRST_EPOCH, 0))

    assert PACE.is_target_due(group, ASSIGNED_MS)


def test_an_interval_of_zero_makes_a_target_for_every_change() -> None:
    pace = replace(PACE, assignment_interval_ms=0)

    assert pace.is_target_due(group_of(1_000), ASSIGNED_MS)


def test_a_clock_that_was_set_back_does_not_hold_a_target_up() -> None:
    assert PACE.is_target_due(group_of(1_000), ASSIGNED_MS - 3_600_000)


@pytest.mark.parametrize(
    ("member_count", "interval_ms"), [(1, 200), (40, 200), (100, 500), (1_000, 5_000)]
)
def test_members_are_heard_of_more_often_after_a_change_unless_they_are_many(
    member_count: int, interval_ms: int
) -> None:
    group = group_of(member_count, epoch=1)

    assert PACE.next_heartbeat_ms(group, ASSIGNED_MS) == interval_ms
    assert PACE.next_heartbeat_ms(group, ASSIGNED_MS + 9_999) == interval_ms
    assert PACE.next_heartbeat_ms(group, ASSIGNED_MS + 10_000) == 5_000


def test_members_are_heard_of_more_often_while_a_target_is_to_be_made() -> None:
    assert PACE.next_heartbeat_ms(group_of(10), ASSIGNED_MS + 60_000) == 200


def test_a_heartbeat_interval_that_is_shorter_anyway_stays() -> None:
    pace = replace(PACE, heartbeat_interval_ms=100)

    assert pace.next_heartbeat_ms(group_of(1), ASSIGNED_MS) == 100
