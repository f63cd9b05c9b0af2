"""The metadata quorum: single nodes, and several that crash, stop, join and freeze."""

import asyncio
import errno
from collections.abc import Awaitable

import pytest
from tests.kits.quorums import (
    METADATA,
    QuorumCluster,
    QuorumNode,
    run,
    set_partitions,
    until_set,
    until_voter,
)
from tests.kits.world import until

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.raft.log import OffsetAndEpoch
from ottla.raft.quorum_state import QuorumState
from ottla.runtime import metadata_snapshots
from ottla.runtime.quorum_state_file import QuorumStateFile
from ottla.runtime.raft_log import RaftLog
from ottla.runtime.snapshots import SnapshotStore
from ottla.testing.simulator.simulated_node import DATA

# Nobody would notice the missing leader in time.
SLOW_S = 100
SLOW = {
    "controller_quorum_fetch_timeout_ms": SLOW_S * 1000,
    "controller_quorum_request_timeout_ms": 10_000,
}


def snapshots_of(node: QuorumNode) -> list[OffsetAndEpoch]:
    return list(SnapshotStore(node.disk, METADATA).list())


async def soon(cluster: QuorumCluster, work: Awaitable[object]) -> None:
    """Long before anyone would notice silence."""
    begin_s = cluster.world.scheduler.now
    await work
    assert cluster.world.scheduler.now - begin_s < SLOW_S / 2


# A single node.


def test_a_single_node_leads_at_once_and_what_it_answered_survives_a_crash() -> None:
    async def test(cluster: QuorumCluster) -> None:
        for number in range(1, 4):
            node = await cluster.start(1)
            assert node.quorum.is_alone
            assert node.leads
            assert node.partitions == (None if number == 1 else str(number - 1))
            await node.set(number)
            assert node.partitions == str(number)
            assert node.core.state.epoch == number
            node.crash()

    run(test)


def test_many_operations_share_a_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(cluster: QuorumCluster) -> None:
        node = await cluster.start(1)
        await node.set(1)
        log = node.quorum.driver.log
        syncs, flush = [], log.flush

        def counted() -> object:
            syncs.append(1)
            return flush()

        monkeypatch.setattr(log, "flush", counted)
        await asyncio.gather(*(node.set(number) for number in range(2, 50)))
        assert len(syncs) < 10

    run(test)


def test_a_start_reads_the_snapshot_and_the_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_snapshots, "RECORDS_MIN", 20)

    async def test(cluster: QuorumCluster) -> None:
        node, number = await cluster.start(1), 0
        while not snapshots_of(node):
            number += 1
            await node.set(number)
        (snapshot_id,) = snapshots_of(node)
        await node.set(number + 1)
        node.crash()
        node = await cluster.start(1)
        assert node.quorum.driver.log.latest_snapshot_id == snapshot_id
        assert node.partitions == str(number + 1)
        assert [voter.key.id for voter in node.core.voters.latest] == [node.id]

    run(test)


def test_two_snapshots_are_kept_and_the_log_from_the_older_one_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metadata_snapshots, "RECORDS_MIN", 2)

    async def test(cluster: QuorumCluster) -> None:
        node = await cluster.start(1)
        log = node.quorum.driver.log
        for number in range(1, 40):
            await node.set(number)
            await until(lambda: not node.quorum.snapshots.is_writing)
        older, newer = snapshots_of(node)
        assert log.latest_snapshot_id == newer
        assert log.start_offset == older.offset
        assert log.epoch_of(older.offset - 1) == older.epoch
        assert log.end_offset - newer.offset < newer.offset - older.offset + 2
        await node.stop()
        log = RaftLog.open(node.disk, DATA, 0)
        assert log.start_offset == older.offset
        assert log.latest_snapshot_id == newer

    run(test)


def test_a_snapshot_that_cannot_be_written_costs_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(metadata_snapshots, "RECORDS_MIN", 2)

    async def test(cluster: QuorumCluster) -> None:
        disk = cluster[1].disk
        write = disk.write_atomically

        def full_for_snapshots(path: str, data: bytes) -> None:
            if path.endswith(".checkpoint"):
                raise OSError(errno.ENOSPC, "disk full")
            write(path, data)

        monkeypatch.setattr(disk, "write_atomically", full_for_snapshots)
        node = await cluster.start(1)
        await node.set(1)
        await node.set(2)
        await until(lambda: "could not write a snapshot" in caplog.text)
        await node.set(3)
        node.crash()
        node = await cluster.start(1)
        assert node.partitions == "3"

    run(test)


def test_a_full_disk_refuses_changes_and_the_node_goes_on_when_there_is_room(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test(cluster: QuorumCluster) -> None:
        node = await cluster.start(1)
        await node.set(1)
        node.disk.disk_full()
        with pytest.raises(ApiError) as refused:
            await node.call(set_partitions(2), timeout_ms=200)
        assert refused.value.code in (ErrorCode.kafka_storage_error, ErrorCode.not_controller)
        assert node.partitions == "1"
        await asyncio.sleep(10)  # Simulated, with repeated attempts.
        node.disk.disk_full(None)
        await node.set(3)
        assert node.partitions == "3"
        assert caplog.text.count("retrying the quorum") == 1

    run(test)


def test_a_failed_sync_is_the_node_s_end() -> None:
    async def test(cluster: QuorumCluster) -> None:
        node = await cluster.start(1)
        await node.set(1)
        failed = node.node.failed
        node.disk.fail_next_sync()
        changing = asyncio.ensure_future(node.set(2))
        await until(lambda: not node.runs)
        assert failed.is_set()
        assert not changing.done() or isinstance(changing.exception(), ApiError)
        changing.cancel()

    run(test)


def test_damage_to_what_was_committed_is_not_taken_for_a_torn_end() -> None:
    async def test(cluster: QuorumCluster) -> None:
        node = await cluster.start(1)
        await node.set(1)
        await node.set(2)
        await node.stop()
        path = f"{METADATA}/{0:020d}.log"
        content = bytearray(node.disk.read_bytes(path))
        content[-3] ^= 1
        node.disk.write_atomically(path, content)
        cluster.begin(1)
        await until(lambda: not node.runs)
        assert "corrupt" in cluster.world.scheduler.trace.lines[-1]

    run(test)


# Several nodes.


def test_nodes_join_as_observers_and_become_voters() -> None:
    async def test(cluster: QuorumCluster) -> None:
        first = await cluster.start(1)
        await first.set(1)
        second = await cluster.start(2)
        assert not second.quorum.is_alone
        assert second.partitions == "1"
        await until_voter(second)
        third = await cluster.start(3)
        await until_voter(third)
        fourth = await cluster.start(4)
        assert fourth.partitions == "1"
        described = await third.describe()
        assert described.leader_id == 1
        assert [voter.replica_id for voter in described.current_voters] == [1, 2, 3]
        assert [observer.replica_id for observer in described.observers or ()] == [4]

    run(test)


def test_a_change_through_any_node_is_in_its_image_when_it_is_answered() -> None:
    async def test(cluster: QuorumCluster) -> None:
        nodes = [*await cluster.form(3), await cluster.start(4)]
        for number, node in enumerate(nodes * 3):
            await node.set(number + 1)
            assert node.partitions == str(number + 1)

    run(test)


def test_when_the_leader_crashes_another_leads_and_nothing_is_lost() -> None:
    async def test(cluster: QuorumCluster) -> None:
        await cluster.form(3)
        for number in range(1, 4):
            leader = await cluster.leader()
            await leader.set(number)
            leader.crash()
            new_leader = await cluster.leader()
            assert new_leader.partitions == str(number)
            await cluster.start(leader.id)
            assert leader.partitions == str(number)

    run(test)


def test_a_follower_that_restarts_knows_the_leader_at_once() -> None:
    async def test(cluster: QuorumCluster) -> None:
        nodes = await cluster.form(3)
        leader = await cluster.leader()
        follower = next(node for node in nodes if node is not leader)
        await follower.stop()
        await soon(cluster, cluster.start(follower.id))
        await soon(cluster, follower.set(7))
        assert follower.partitions == "7"

    run(test, **SLOW)


def test_no_more_nodes_than_the_quorum_needs_can_add_themselves() -> None:
    async def test(cluster: QuorumCluster) -> None:
        *_, last = await cluster.form(3)
        fourth = await cluster.start(4)
        with pytest.raises(ApiError, match="all the voters that it needs"):
            await fourth.add_voter(ack_when_committed=False)
        await fourth.add_voter(ack_when_committed=True)
        assert len((await last.describe()).current_voters) == 4

    run(test)


def test_a_leader_that_stops_hands_over() -> None:
    async def test(cluster: QuorumCluster) -> None:
        await cluster.form(3)
        leader = await cluster.leader()

        async def change_leader() -> None:
            await leader.stop()
            await (await cluster.leader()).set(5)

        await soon(cluster, change_leader())

    run(test, **SLOW)


def test_nobody_waits_long_for_a_leader_whose_process_has_ended() -> None:
    async def test(cluster: QuorumCluster) -> None:
        nodes = await cluster.form(3)
        observer = await cluster.start(4)
        leader = await cluster.leader()
        await observer.set(1)
        leader.crash()

        async def go_on() -> None:
            await (await cluster.leader()).set(2)
            await next(node for node in nodes if node is not leader and not node.leads).set(3)
            await observer.set(4)

        await soon(cluster, go_on())

    run(test, **SLOW)


def test_time_stands_still_for_the_core_while_the_quorum_state_is_saved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise an election would be over before its first request was sent."""
    save, save_s = QuorumStateFile.save, 0.3

    async def test(cluster: QuorumCluster) -> None:
        def save_slowly(file: QuorumStateFile, state: QuorumState) -> None:
            cluster.world.scheduler.now += save_s
            save(file, state)

        monkeypatch.setattr(QuorumStateFile, "save", save_slowly)
        node = await cluster.start(1)
        driver = node.quorum.driver
        assert driver.time_of_day_ms(driver.now_ms()) - driver.now_ms() >= save_s * 1000

    run(test)


def test_a_process_that_did_not_run_for_a_while_keeps_its_leader() -> None:
    """All nodes freeze at once: each finds that the others were silent for long."""

    async def test(cluster: QuorumCluster) -> None:
        nodes = await cluster.form(3)
        leader = await cluster.leader()
        epoch = leader.core.state.epoch
        for number in range(1, 3):
            for node in nodes:
                node.simulated.pause()
            await asyncio.sleep(1.5)
            for node in nodes:
                node.simulated.resume()
            await nodes[2].set(number)
            for node in nodes:
                await until_set(node, number)
        assert leader.leads
        assert leader.core.state.epoch == epoch

    run(
        test,
        controller_quorum_fetch_timeout_ms=600,
        controller_quorum_request_timeout_ms=60_000,
    )


def test_a_call_through_a_leader_that_is_cut_off_is_answered_by_the_next_one() -> None:
    async def test(cluster: QuorumCluster) -> None:
        await cluster.form(3)
        leader = await cluster.leader()
        cluster.cut_off(leader)
        waiting = asyncio.ensure_future(leader.call(set_partitions(9)))
        new_leader = await cluster.leader(other_than=leader)
        await new_leader.set(8)
        cluster.mend(leader)
        await waiting
        assert leader.partitions == "9"

    run(test)


def test_without_a_controller_a_call_is_refused_when_its_time_is_over() -> None:
    async def test(cluster: QuorumCluster) -> None:
        node, other = await cluster.form(2)
        other.crash()
        await until(lambda: not node.leads)
        with pytest.raises(ApiError) as refused:
            await node.call(set_partitions(1), timeout_ms=100)
        assert refused.value.code is ErrorCode.not_controller
        await cluster.start(other.id)
        await node.set(2)

    run(test)


def test_a_node_of_another_cluster_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    async def test(cluster: QuorumCluster) -> None:
        first, left = await cluster.form(2)
        cluster.cut_off(left)
        first.simulated.lose_directory()
        await cluster.start(1)
        await cluster.start(3)
        cluster.mend(left)
        await until(lambda: "node-1:9092 is a node of another cluster" in caplog.text)
        await asyncio.sleep(20)  # Simulated, in which it retries.
        assert caplog.text.count("is a node of another cluster") == 1
        assert not left.leads

    run(test)


def test_who_must_run_is_said_when_there_is_no_leader(caplog: pytest.LogCaptureFixture) -> None:
    async def test(cluster: QuorumCluster) -> None:
        _, other = await cluster.form(2)
        other.crash()
        text = "voters must run: 1 at node-1:9092, 2 at node-2:9092"
        await until(lambda: text in caplog.text)

    run(test)


def test_a_node_that_was_away_catches_up_with_a_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_snapshots, "RECORDS_MIN", 5)

    async def test(cluster: QuorumCluster) -> None:
        nodes = await cluster.form(3)
        leader = await cluster.leader()
        away = next(node for node in nodes if node is not leader)
        away.crash()
        end_offset = RaftLog.open(away.disk, DATA, 0).end_offset
        number = 0
        while leader.quorum.driver.log.start_offset <= end_offset:
            number += 1
            await leader.set(number)
        await cluster.start(away.id)
        assert away.partitions == str(number)
        assert away.quorum.driver.log.start_offset > end_offset
        await until_voter(away)
        leader.crash()
        await (await cluster.leader()).set(number + 1)
        await until_set(away, number + 1)

    run(test)
