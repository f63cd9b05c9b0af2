"""Followers and their leaders, on real nodes."""

import asyncio
from typing import Any

import pytest
from tests.kits.brokers import CONTROLLER, SHORT_LAG_MAX_MS, Cluster, run
from tests.kits.world import until
from tests.replication.roles import leader_of
from tests.storage.batches import read_all

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replication.partition import FlushPolicy
from ottla.replication.replica_fetcher import ReplicaFetcher
from ottla.replication.replica_fetchers import PURPOSE

BOTH = pytest.mark.parametrize("policy", [FlushPolicy.ACK, FlushPolicy.OS])


def same_logs(cluster: Cluster, name: str) -> bool:
    logs = [read_all(broker.log(name)) for broker in cluster.brokers.values()]
    return all(log == logs[0] for log in logs)


def committed_everywhere(cluster: Cluster, name: str, *values: str) -> bool:
    return all(
        broker.values(name, committed=True) == list(values) for broker in cluster.brokers.values()
    )


@BOTH
def test_what_is_acknowledged_is_on_every_in_sync_replica(policy: FlushPolicy) -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.create("topic")
        leader = cluster.leader("topic")
        for number in range(20):
            await leader.produce("topic", f"{number}")
        for broker in cluster.brokers.values():
            assert broker.values("topic") == [f"{number}" for number in range(20)]
            if policy is FlushPolicy.ACK:
                assert broker.log("topic").flushed_offset == 20
        await until(lambda: committed_everywhere(cluster, "topic", *map(str, range(20))))
        assert same_logs(cluster, "topic")

    run(test, policy=policy)


def test_many_partitions_share_a_fetch() -> None:
    async def test(cluster: Cluster) -> None:
        names = [f"topic-{number}" for number in range(30)]
        for name in names:
            await cluster.create(name)
        leader = cluster.brokers[1]
        fetches_count = cluster.brokers[2].count_requests()
        for _ in range(3):
            await asyncio.gather(*(leader.produce(name, name) for name in names))
        await until(lambda: all(same_logs(cluster, name) for name in names))
        # Each round of produces takes some fetches for all partitions, not for each.
        assert 0 < fetches_count[PURPOSE] < 60

    run(test, replica_fetch_wait_max_ms=600_000)


def test_a_new_partition_does_not_wait_for_the_fetch_of_the_others() -> None:
    """A fetch that waits is answered when the follower sends another one."""

    async def test(cluster: Cluster) -> None:
        for name in ("first", "second", "third"):
            await cluster.create(name)
            await cluster.leader(name).produce(name, name)
        await cluster.change("first", leader=3)
        await cluster.leader("first").produce("first", "more")

    run(test, replica_fetch_wait_max_ms=600_000)


def test_a_follower_without_a_log_copies_all_of_it() -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.create("topic", isr=(1,))
        cluster.cut(3)
        leader = cluster.leader("topic")
        for number in range(10):
            await leader.produce("topic", f"{number}")
        cluster.heal()
        await until(lambda: same_logs(cluster, "topic"))
        await until(lambda: cluster.state("topic").isr == (1, 2, 3))

    run(test)


def test_a_follower_that_is_cut_off_leaves_the_set_and_comes_back() -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.create("topic")
        leader = cluster.leader("topic")
        await leader.produce("topic", "one")
        cluster.cut(3)
        await leader.produce("topic", "two")
        assert 3 not in cluster.state("topic").isr
        assert cluster.brokers[3].values("topic") == ["one"]
        cluster.heal()
        await until(lambda: cluster.state("topic").isr == (1, 2, 3))
        await until(lambda: committed_everywhere(cluster, "topic", "one", "two"))

    run(test, replica_lag_time_max_ms=SHORT_LAG_MAX_MS)


def test_a_follower_can_join_while_producers_write() -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.create("topic", isr=(1,))
        leader = cluster.leader("topic")
        number = 0
        while cluster.state("topic").isr != (1, 2, 3):
            await leader.produce("topic", f"{number}")
            number += 1
        await until(lambda: same_logs(cluster, "topic"))

    run(test)


@BOTH
def test_a_leader_that_returns_gives_up_what_was_not_committed(policy: FlushPolicy) -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.create("topic")
        old = cluster.leader("topic")
        await old.produce("topic", "one")
        cluster.cut(1)
        lost = asyncio.ensure_future(old.produce("topic", "lost"))
        await until(lambda: old.values("topic") == ["one", "lost"])
        await cluster.change("topic", leader=2, isr=(2, 3))
        new = cluster.leader("topic")
        await new.produce("topic", "two")
        await new.produce("topic", "three")
        assert old.values("topic") == ["one", "lost"]
        assert not lost.done()
        cluster.heal()
        with pytest.raises(ApiError) as refused:
            await lost
        assert refused.value.code is ErrorCode.not_leader_or_follower
        await until(lambda: committed_everywhere(cluster, "topic", "one", "two", "three"))
        assert same_logs(cluster, "topic")
        await until(lambda: cluster.state("topic").isr == (1, 2, 3))

    run(test, policy=policy)


def test_the_log_of_a_broker_that_leads_meanwhile_is_not_cut() -> None:
    """Its leader said where to truncate; while others were synced, that leader was replaced."""

    async def test(cluster: Cluster) -> None:
        for name in ("parted", "synced"):
            await cluster.create(name)
            await cluster.leader(name).produce(name, "one")
        first = cluster.brokers[1]
        cluster.cut(1)
        lost = asyncio.ensure_future(first.produce("parted", "two"))
        await until(lambda: first.log("parted").flushed_offset == 2)
        for name in ("parted", "synced"):
            await cluster.change(name, leader=2, isr=(2, 3))
            await cluster.leader(name).produce(name, "other")
        with first.held_flushes("synced") as begun:
            cluster.heal()
            await until(lambda: bool(begun))
            await cluster.change("parted", leader=1, isr=(1,))
            with pytest.raises(ApiError):
                await lost
            await first.produce("parted", "three")
        await cluster.leader("synced").produce("synced", "last")
        await until(lambda: first.values("synced") == ["one", "other", "last"])
        assert first.values("parted") == ["one", "two", "three"]

    run(test)


def test_logs_that_parted_over_several_epochs_meet_again() -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.create("topic")
        await cluster.leader("topic").produce("topic", "common")
        cluster.cut(1, 2, 3)
        # Broker 1 continues in epochs that the others have ended, and vice versa.
        for epoch in range(3):
            for value in ("x", "y"):
                await cluster.brokers[1].produce("topic", f"{value}{epoch}", acks=1)
            await cluster.change("topic", leader=2, isr=(2, 3))
            await cluster.leader("topic").produce("topic", f"kept {epoch}")
            await cluster.change("topic", leader=1)
        await cluster.change("topic", leader=3)
        await cluster.leader("topic").produce("topic", "last")
        cluster.heal()
        expected = ("common", "kept 0", "kept 1", "kept 2", "last")
        await until(lambda: committed_everywhere(cluster, "topic", *expected))
        assert same_logs(cluster, "topic")

    run(test)


def test_an_epoch_in_which_nothing_was_written_does_not_stop_a_follower() -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.create("topic")
        await cluster.leader("topic").produce("topic", "one")
        for leader in (2, 3, 1, 2):
            await cluster.change("topic", leader=leader)
        await cluster.leader("topic").produce("topic", "two")
        await until(lambda: committed_everywhere(cluster, "topic", "one", "two"))

    run(test)


def test_a_follower_that_the_leaders_log_does_not_reach_begins_anew() -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.create("topic")
        leader = cluster.leader("topic")
        await leader.produce("topic", "one")
        await until(lambda: committed_everywhere(cluster, "topic", "one"))
        cluster.cut(3)
        await cluster.change("topic", isr=(1, 2))
        for number in range(5):
            await leader.produce("topic", f"{number}")
        leader.log("topic").delete_records_before(4)
        cluster.heal()
        await until(lambda: cluster.brokers[3].values("topic") == ["3", "4"])
        assert cluster.brokers[3].log("topic").log_start_offset == 4
        await until(lambda: cluster.state("topic").isr == (1, 2, 3))

    run(test, replica_lag_time_max_ms=SHORT_LAG_MAX_MS)


@BOTH
def test_a_follower_begins_within_a_batch_where_the_leaders_log_does(policy: FlushPolicy) -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.create("topic")
        leader = cluster.leader("topic")
        await leader.produce("topic", "one")
        await cluster.crash(3)
        await leader.produce("topic", *map(str, range(5)))
        leader.log("topic").delete_records_before(4)
        for end_offset in (6, 7):
            await cluster.restart(3)
            await until(lambda: cluster.state("topic").isr == (1, 2, 3))
            follower = cluster.brokers[3].log("topic")
            assert (follower.log_start_offset, follower.log_end_offset) == (4, end_offset)
            if policy is FlushPolicy.ACK:
                assert follower.flushed_offset == end_offset
            await cluster.crash(3)
            await leader.produce("topic", "last")

    run(test, policy=policy, replica_lag_time_max_ms=SHORT_LAG_MAX_MS)


def test_what_the_leader_deletes_is_deleted_on_its_followers() -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.create("topic")
        leader = cluster.leader("topic")
        for number in range(5):
            await leader.produce("topic", f"{number}")
        leader.log("topic").delete_records_before(3)
        deleted = asyncio.get_running_loop().create_future()
        leader_of(leader.partition("topic")).on_deleted(3, deleted.set_result)
        assert await deleted is None
        for broker in cluster.brokers.values():
            assert broker.log("topic").log_start_offset == 3

    run(test)


def test_a_follower_that_hears_of_a_leader_first_asks_again_until_that_knows() -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.create("topic")
        await cluster.leader("topic").produce("topic", "one")
        late = cluster.brokers[2]
        cluster.cut(2, CONTROLLER)
        fetches_count = cluster.brokers[3].count_requests()
        await cluster.change("topic", leader=2)
        await until(lambda: fetches_count[PURPOSE] > 3)  # Without effect.
        cluster.heal()
        await late.produce("topic", "two")
        await until(lambda: committed_everywhere(cluster, "topic", "one", "two"))

    run(test)


@pytest.mark.parametrize("broken", [2, 3])
def test_a_disk_that_fails_on_a_follower_holds_up_nobody_for_long(broken: int) -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.create("topic")
        leader = cluster.leader("topic")
        await leader.produce("topic", "one")
        cluster.brokers[broken].disk.fail_next_sync()
        await leader.produce("topic", "two")
        assert broken not in cluster.state("topic").isr

    run(test, replica_lag_time_max_ms=SHORT_LAG_MAX_MS)


def test_a_follower_on_a_full_disk_says_so_once_and_goes_on_when_there_is_room(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    waits_ms: list[float] = []
    leave_out_for = ReplicaFetcher._leave_out_for

    def leave_out_briefly(self: ReplicaFetcher, replica: Any, wait_ms: float) -> None:
        waits_ms.append(wait_ms)
        leave_out_for(self, replica, 1)

    monkeypatch.setattr(ReplicaFetcher, "_leave_out_for", leave_out_briefly)

    async def test(cluster: Cluster) -> None:
        await cluster.create("topic")
        leader = cluster.leader("topic")
        await leader.produce("topic", "one")
        disk, logs = cluster.brokers[2].disk, cluster.brokers[2].logs
        disk.disk_full(0)
        await leader.produce("topic", "two")
        await until(lambda: waits_ms.count(max(waits_ms)) > 3)
        disk.disk_full(None)

        def looked_and_committed() -> bool:
            logs.log_dirs.look_for_room()
            return committed_everywhere(cluster, "topic", "one", "two")

        await until(looked_and_committed)
        lines = [line for line in caplog.text.splitlines() if "is full" in line]
        assert sum("topic-0" in line for line in lines) == 1  # Others are for the metadata.

    run(test, replica_lag_time_max_ms=SHORT_LAG_MAX_MS)


def test_nothing_acknowledged_is_lost_when_every_broker_loses_its_power() -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.create("topic")
        for number in range(5):
            await cluster.leader("topic").produce("topic", f"{number}")
        for broker_id in (1, 2, 3):
            await cluster.crash(broker_id)
        for broker_id in (1, 2, 3):
            await cluster.restart(broker_id)
        for broker in cluster.brokers.values():
            assert broker.values("topic")[:5] == [f"{number}" for number in range(5)]

    run(test)


def test_a_broker_that_lost_its_disk_is_filled_again() -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.create("topic")
        await cluster.leader("topic").produce("topic", "one")
        await cluster.crash(3)
        cluster.brokers[3].simulated.lose_directory()
        await cluster.leader("topic").produce("topic", "two")
        await cluster.restart(3)
        await until(lambda: cluster.state("topic").isr == (1, 2, 3))
        assert cluster.brokers[3].values("topic") == ["one", "two"]

    run(test, replica_lag_time_max_ms=SHORT_LAG_MAX_MS)


def test_a_partition_that_moves_away_is_copied_no_longer() -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.create("topic", replicas=(1, 2))
        await cluster.leader("topic").produce("topic", "one")
        await cluster.change("topic", replicas=(1, 3), isr=(1,), adding_replicas=(3,))
        await until(lambda: cluster.state("topic").isr == (1, 3))
        with pytest.raises(LookupError):
            cluster.brokers[2].log("topic")
        fetches_count = cluster.brokers[2].count_requests()
        await asyncio.sleep(60)
        assert fetches_count[PURPOSE] == 0

    run(test)
