"""The leader is broker 1 with followers 2 and 3, in a log that ended at 10 when its epoch began."""

import pytest

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replication.followers import (
    PROPOSE_AGAIN_MS,
    UNKNOWN_OFFSET,
    FollowerFetch,
    Followers,
    IsrChange,
)

LAG_MAX_MS = 1000


class Kit:
    def __init__(self, *isr: int) -> None:
        self.ineligible: set[int] = set()
        self.high_watermark = 0
        self.followers = Followers(1, 10, self._is_eligible, LAG_MAX_MS)
        self.followers.update((1, 2, 3), isr, 0, 0)

    def _is_eligible(self, replica: int, broker_epoch: int) -> bool:
        assert broker_epoch == 70 + replica
        return replica not in self.ineligible

    def fetch(self, replica: int, offset: int, end_offset: int, now_ms: float = 0) -> bool:
        fetch = FollowerFetch(replica, 70 + replica, offset, 0)
        return self.followers.on_fetch(fetch, end_offset, self.high_watermark, now_ms)

    def committed(self, own_offset: int, min_insync_replicas: int = 1) -> int:
        return self.followers.committed_offset(own_offset, min_insync_replicas)


def test_what_the_slowest_in_sync_replica_has_is_committed() -> None:
    kit = Kit(1, 2, 3)
    assert kit.committed(20) == UNKNOWN_OFFSET
    kit.fetch(2, 15, 20)
    assert kit.committed(20) == UNKNOWN_OFFSET
    kit.fetch(3, 12, 20)
    assert kit.committed(20) == 12
    assert kit.committed(11) == 11


def test_replicas_that_are_behind_are_not_waited_for() -> None:
    kit = Kit(1, 2)
    kit.high_watermark = 15
    kit.fetch(2, 15, 20)
    kit.fetch(3, 12, 20)
    assert kit.committed(20) == 15


def test_nothing_is_committed_with_fewer_than_the_minimum_in_sync() -> None:
    kit = Kit(1, 2)
    kit.fetch(2, 20, 20)
    assert kit.committed(20, min_insync_replicas=2) == 20
    assert kit.committed(20, min_insync_replicas=3) == UNKNOWN_OFFSET
    kit.followers.update((1, 2), (1, 2), 1, 0)
    assert kit.committed(20, min_insync_replicas=3) == 20


def test_replicas_that_are_being_added_do_not_raise_the_minimum() -> None:
    kit = Kit(1)
    kit.followers.update((1, 2, 3), (1,), 1, 0, adding=(2, 3))
    assert kit.committed(20, min_insync_replicas=2) == 20
    kit.followers.update((1, 2, 3), (1,), 2, 0)
    assert kit.committed(20, min_insync_replicas=2) == UNKNOWN_OFFSET


def test_a_follower_that_reaches_the_high_watermark_joins() -> None:
    kit = Kit(1, 2)
    kit.high_watermark = 15
    assert not kit.fetch(3, 14, 20)
    assert kit.followers.pending is None
    assert kit.fetch(3, 15, 20)
    assert kit.followers.pending == IsrChange((1, 2, 3), 0)


def test_a_follower_that_has_not_reached_the_epoch_does_not_join() -> None:
    """A new leader's high watermark may be outdated."""
    kit = Kit(1)
    assert not kit.fetch(2, 9, 10)
    assert kit.fetch(2, 10, 10)


def test_the_joining_replica_is_waited_for_before_the_controller_answers() -> None:
    kit = Kit(1)
    kit.high_watermark = 15
    assert kit.fetch(3, 15, 20)
    assert kit.committed(20) == 15
    assert not kit.fetch(2, 20, 20)  # One change at a time.
    kit.followers.update((1, 2, 3), (1, 3), 1, 0)
    assert kit.followers.pending is None
    assert kit.committed(20) == 15
    assert kit.fetch(2, 20, 20)
    assert kit.followers.pending == IsrChange((1, 2, 3), 1)


def test_those_who_leave_are_waited_for_until_the_controller_answers() -> None:
    kit = Kit(1, 2, 3)
    kit.fetch(2, 20, 20, now_ms=500)
    kit.fetch(3, 12, 20, now_ms=500)
    assert not kit.followers.maybe_shrink(20, now_ms=LAG_MAX_MS)
    assert kit.followers.maybe_shrink(20, now_ms=LAG_MAX_MS + 1)
    assert kit.followers.pending == IsrChange((1, 2), 0)
    assert kit.committed(20) == 12
    assert not kit.followers.maybe_shrink(20, now_ms=LAG_MAX_MS + 2)
    kit.followers.update((1, 2, 3), (1, 2), 1, 0)
    assert kit.committed(20) == 20


def test_an_older_word_of_the_controller_changes_nothing() -> None:
    kit = Kit(1, 2)
    assert not kit.followers.update((1, 2, 3), (1,), 0, 0)
    assert kit.followers.isr == (1, 2)


def test_a_change_that_is_refused_is_proposed_again_after_a_while() -> None:
    kit = Kit(1)
    assert kit.fetch(2, 20, 20)
    change = kit.followers.pending
    assert change is not None
    kit.followers.on_refused(change, 0)
    assert kit.followers.pending is None
    assert not kit.fetch(2, 20, 20, now_ms=PROPOSE_AGAIN_MS - 1)
    assert kit.fetch(2, 20, 20, now_ms=PROPOSE_AGAIN_MS)
    kit.followers.on_refused(change._replace(), 0)  # From an earlier change.
    assert kit.followers.pending == IsrChange((1, 2), 0)


@pytest.mark.parametrize("offset", [20, 25])
def test_a_follower_that_keeps_pace_is_not_late(offset: int) -> None:
    """It never reaches the end, but each time it has what was there the time before."""
    kit = Kit(1, 2)
    kit.fetch(2, 15, 20, now_ms=900)
    kit.fetch(2, offset, 30, now_ms=1_800)
    assert not kit.followers.maybe_shrink(30, now_ms=1_900)
    assert kit.followers.maybe_shrink(30, now_ms=1_901)


def test_a_follower_that_falls_behind_is_late() -> None:
    kit = Kit(1, 2)
    kit.fetch(2, 15, 20, now_ms=900)
    kit.fetch(2, 19, 30, now_ms=1_800)
    assert kit.followers.maybe_shrink(30, now_ms=1_900)
    assert kit.followers.pending == IsrChange((1,), 0)


def test_a_follower_of_a_quiet_log_is_never_late() -> None:
    kit = Kit(1, 2)
    kit.fetch(2, 20, 20)
    assert not kit.followers.maybe_shrink(20, now_ms=100_000)
    assert not kit.followers.maybe_shrink(21, now_ms=100_000 + LAG_MAX_MS)
    assert kit.followers.maybe_shrink(21, now_ms=100_001 + LAG_MAX_MS)


def test_the_high_watermark_waits_for_one_that_is_near() -> None:
    """Otherwise a follower could never reach it while producers write."""
    kit = Kit(1)
    kit.high_watermark = 30
    kit.fetch(2, 15, 20)
    assert kit.committed(30) == 30
    kit.fetch(2, 20, 30)
    assert kit.committed(40) == 20
    kit.ineligible.add(2)
    assert kit.committed(40) == 40
    kit.ineligible.clear()
    kit.followers.maybe_shrink(40, now_ms=LAG_MAX_MS + 1)
    assert kit.committed(40) == 40


def test_a_broker_that_may_not_be_in_sync_does_not_join() -> None:
    kit = Kit(1)
    kit.ineligible.add(2)
    assert not kit.fetch(2, 20, 20)


def test_a_fetch_of_an_earlier_life_is_refused() -> None:
    kit = Kit(1, 2)
    kit.fetch(2, 20, 20)
    with pytest.raises(ApiError) as refused:
        kit.followers.on_fetch(FollowerFetch(2, 71, 10, 0), 20, 0, 0)
    assert refused.value.code is ErrorCode.not_leader_or_follower
    assert kit.committed(20) == 20


def test_a_fetch_of_a_stranger_is_refused() -> None:
    with pytest.raises(ApiError) as refused:
        Kit(1, 2).fetch(4, 0, 20)
    assert refused.value.code is ErrorCode.unknown_leader_epoch


def test_replicas_come_and_go() -> None:
    kit = Kit(1, 2, 3)
    kit.fetch(2, 20, 20)
    kit.fetch(3, 12, 20)
    kit.followers.update((1, 2, 4), (1, 2), 1, 0)
    assert [follower.replica_id for follower in kit.followers] == [2, 4]
    assert kit.committed(20) == 20
    assert kit.fetch(4, 20, 20)
    assert kit.followers.pending == IsrChange((1, 2, 4), 1)


def test_a_follower_that_lost_what_it_had_leaves_at_once() -> None:
    kit = Kit(1, 2, 3)
    kit.high_watermark = 15
    assert not kit.fetch(2, 15, 20)
    assert kit.fetch(3, 14, 20)
    assert kit.followers.pending == IsrChange((1, 2), 0)
    assert not kit.fetch(3, 14, 20)
    kit.followers.update((1, 2, 3), (1, 2), 1, 0)
    kit.fetch(2, 20, 20)
    assert kit.committed(20) == 20


def test_a_quiet_follower_joins_when_it_may() -> None:
    """It has nothing to fetch, and does not report its offset again."""
    kit = Kit(1)
    kit.ineligible.add(2)
    assert not kit.fetch(2, 10, 10)
    assert not kit.followers.maybe_expand(10, 0)
    kit.ineligible.clear()
    assert kit.followers.maybe_expand(10, 0)
    assert kit.followers.pending == IsrChange((1, 2), 0)


def test_a_follower_that_caught_up_during_another_change_joins_after_it() -> None:
    kit = Kit(1)
    assert kit.fetch(2, 10, 10)
    assert not kit.fetch(3, 10, 10)
    assert not kit.followers.maybe_expand(10, 0)
    kit.followers.update((1, 2, 3), (1, 2), 1, 0)
    assert kit.followers.maybe_expand(10, 0)
    assert kit.followers.pending == IsrChange((1, 2, 3), 1)


def test_a_follower_that_hangs_does_not_join_again_by_itself() -> None:
    kit = Kit(1, 2)
    kit.fetch(2, 10, 10)
    assert kit.followers.maybe_shrink(11, LAG_MAX_MS + 1)
    kit.followers.update((1, 2, 3), (1,), 1, LAG_MAX_MS + 1)
    assert not kit.followers.maybe_expand(10, LAG_MAX_MS + 1)
