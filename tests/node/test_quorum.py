import asyncio
import errno
import time

import pytest
from tests.node.quorum_kit import METADATA, QuorumCluster, set_partitions, until, until_voter

from ottla.controller.image import BROKER_RESOURCE
from ottla.controller.record_codec import MetadataRecordCodec
from ottla.controller.records import ConfigRecord
from ottla.node import quorum
from ottla.node.metadata_feed import Listener
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.raft.log import OffsetAndEpoch
from ottla.records.batch import assign
from ottla.runtime import metadata_snapshots, raft_driver
from ottla.runtime.machine_batches import encode_batch
from ottla.runtime.quorum_state_file import QuorumStateFile
from ottla.runtime.raft_log import RaftLog
from ottla.runtime.snapshots import SnapshotStore
from ottla.storage.errors import StorageError
from ottla.storage.faulty_filesystem import FaultyFilesystem


def run(test, **values):
    async def main():
        cluster = QuorumCluster(**values)
        await test(cluster)
        await cluster.stop()

    asyncio.run(main())


def snapshots_of(cluster, node_id=1):
    return list(SnapshotStore(cluster.disks[node_id], METADATA).list())


# A node on its own.


def test_a_single_node_leads_at_once_and_what_it_answered_survives_a_crash():
    async def test(cluster):
        for number in range(1, 4):
            node = await cluster.start(1)
            assert node.quorum.is_alone
            await until(lambda node=node: node.leads)
            assert node.partitions == (None if number == 1 else str(number - 1))
            await node.set(number)
            assert node.partitions == str(number)
            assert node.core.state.epoch == number
            await node.crash()

    run(test)


def test_many_operations_share_a_sync():
    async def test(cluster):
        node = await cluster.start(1)
        await node.set(1)
        syncs = []
        flush = node.quorum.driver.log.flush
        node.quorum.driver.log.flush = lambda: syncs.append(1) or flush()
        await asyncio.gather(*(node.set(number) for number in range(2, 50)))
        assert len(syncs) < 10

    run(test)


def test_a_start_reads_the_snapshot_and_the_tail(monkeypatch):
    monkeypatch.setattr(metadata_snapshots, "RECORDS_MIN", 3)

    async def test(cluster):
        node = await cluster.start(1)
        for number in range(1, 4):
            await node.set(number)
        await until(lambda: snapshots_of(cluster))
        assert snapshots_of(cluster) == [OffsetAndEpoch(6, 1)]
        await node.set(4)
        await node.crash()
        node = await cluster.start(1)
        await until(lambda: node.leads)
        assert node.partitions == "4"
        assert [voter.key for voter in node.core.voters.latest] == [node.key]

    run(test)


def test_two_snapshots_are_kept_and_the_log_from_the_older_one_on(monkeypatch):
    monkeypatch.setattr(metadata_snapshots, "RECORDS_MIN", 2)

    async def test(cluster):
        node = await cluster.start(1)
        log = node.quorum.driver.log
        for number in range(1, 20):
            await node.set(number)
            await until(lambda: not node.quorum.snapshots.is_writing)
        older, newer = snapshots_of(cluster)
        assert log.latest_snapshot_id == newer
        assert log.start_offset == older.offset
        assert log.epoch_of(older.offset - 1) == older.epoch
        assert log.end_offset - newer.offset < newer.offset - older.offset + 2
        await node.stop()
        log = RaftLog.open(cluster.disks[1], "/data", 0)
        assert log.start_offset == older.offset
        assert log.latest_snapshot_id == newer

    run(test)


def test_a_snapshot_that_cannot_be_written_costs_nothing(monkeypatch, caplog):
    monkeypatch.setattr(metadata_snapshots, "RECORDS_MIN", 2)

    async def test(cluster):
        node = await cluster.start(1)
        write = node.disk.write_atomically

        def full_for_snapshots(path, data):
            if path.endswith(".checkpoint"):
                raise OSError(errno.ENOSPC, "disk full")
            write(path, data)

        monkeypatch.setattr(node.disk, "write_atomically", full_for_snapshots)
        await node.set(1)
        await node.set(2)
        await until(lambda: "could not write a snapshot" in caplog.text)
        await node.set(3)
        await node.crash()
        node = await cluster.start(1)
        await until(lambda: node.leads)
        assert node.partitions == "3"

    run(test)


def test_a_full_disk_refuses_changes_and_the_node_goes_on_when_there_is_room(monkeypatch, caplog):
    restarts = []

    async def sleep(delay_s):
        restarts.append(delay_s)
        await asyncio.sleep(0.01)

    monkeypatch.setattr(raft_driver, "sleep", sleep)

    async def test(cluster):
        node = await cluster.start(1)
        await node.set(1)
        node.disk.disk_full()
        with pytest.raises(ApiError) as refused:
            await node.call(set_partitions(2), timeout_ms=200)
        assert refused.value.code in (ErrorCode.kafka_storage_error, ErrorCode.not_controller)
        assert node.partitions == "1"
        await until(lambda: len(restarts) > 2)
        node.disk.disk_full(None)
        await node.set(3)
        assert node.partitions == "3"
        assert caplog.text.count("retrying the quorum") == 1

    run(test)


def test_a_failed_sync_is_the_node_s_end():
    async def test(cluster):
        node = await cluster.start(1)
        await node.set(1)
        node.disk.fail_next_sync()
        with pytest.raises(ApiError):
            await node.call(set_partitions(2), timeout_ms=200)
        assert isinstance(node.failures[0], StorageError)
        node.failures.clear()
        await node.crash()

    run(test)


def test_a_log_of_a_version_without_a_quorum_is_taken_up():
    async def test(cluster):
        disk = cluster.disks[1] = FaultyFilesystem(seed=1)
        log = RaftLog.open(disk, "/data", 0)
        record = ConfigRecord(
            resource_type=BROKER_RESOURCE, resource_name="", name="num.partitions", value="7"
        )
        batch = encode_batch((record,), MetadataRecordCodec(), 1000)
        assign(batch, 0, 0, 1)
        log.append(batch)
        log.close()
        node = await cluster.start(1)
        await until(lambda: node.leads)
        assert node.partitions == "7"
        assert node.core.state.epoch == 2
        await node.set(8)
        await node.crash()
        node = await cluster.start(1)
        await until(lambda: node.leads)
        assert node.partitions == "8"

    run(test)


def test_damage_to_what_was_committed_is_not_taken_for_a_torn_end():
    async def test(cluster):
        node = await cluster.start(1)
        await node.set(1)
        await node.set(2)
        await node.stop()
        disk = cluster.disks[1]
        path = f"{METADATA}/{0:020d}.log"
        content = bytearray(disk.read_bytes(path))
        content[-3] ^= 1
        disk.write_atomically(path, content)
        with pytest.raises(StorageError, match="corrupt"):
            await cluster.start(1)

    run(test)


# Several nodes.

# Nobody would notice in time that there is no leader, nor take a pause of this process for it.
SLOW = {
    "controller.quorum.fetch.timeout.ms": 100_000,
    "controller.quorum.request.timeout.ms": 10_000,
}


def test_nodes_join_as_observers_and_become_voters():
    async def test(cluster):
        first = await cluster.start(1)
        await first.set(1)
        second = await cluster.start(2)
        assert not second.quorum.is_alone
        await until(lambda: second.partitions == "1")
        assert not second.core.is_voter
        await until_voter(second)
        third = await cluster.start(3)
        await until_voter(third)
        await cluster.start(4)
        described = await third.describe()
        assert described.leader_id == 1
        assert [voter.replica_id for voter in described.current_voters] == [1, 2, 3]
        await until(lambda: 4 in cluster.nodes and cluster.nodes[4].partitions == "1")
        described = await third.describe()
        assert [observer.replica_id for observer in described.observers] == [4]

    run(test, **SLOW)


def test_a_change_through_any_node_is_in_its_image_when_it_is_answered():
    async def test(cluster):
        nodes = [*await cluster.form(3), await cluster.start(4)]
        for number, node in enumerate(nodes * 3):
            await node.set(number + 1)
            assert node.partitions == str(number + 1)

    run(test)


def test_when_the_leader_crashes_another_leads_and_nothing_is_lost():
    async def test(cluster):
        await cluster.form(3)
        for number in range(1, 4):
            leader = await cluster.leader()
            await leader.set(number)
            await leader.crash()
            new_leader = await cluster.leader()
            assert new_leader.partitions == str(number)
            restarted = await cluster.start(leader.id)
            await until(lambda: restarted.partitions == str(number))  # noqa: B023

    run(test)


def test_a_follower_that_restarts_knows_the_leader_at_once():
    async def test(cluster):
        await cluster.form(3)
        leader = await cluster.leader()
        follower = next(node for node in cluster.nodes.values() if node != leader)
        await follower.stop()
        follower = await cluster.start(follower.id)
        await follower.set(7)
        assert follower.partitions == "7"

    run(test)


def test_no_more_nodes_than_the_quorum_needs_can_add_themselves():
    async def test(cluster):
        *_, last = await cluster.form(3)
        fourth = await cluster.start(4)
        with pytest.raises(ApiError, match="all the voters that it needs"):
            await fourth.add_voter(ack_when_committed=False)
        await until_voter(fourth)
        assert len((await last.describe()).current_voters) == 4

    run(test, **SLOW)


def test_a_leader_that_stops_hands_over():
    async def test(cluster):
        nodes = await cluster.form(3)
        leader = await cluster.leader()
        await leader.stop()
        await cluster.leader()
        await nodes[2].set(5)

    run(test, **SLOW)


def test_nobody_waits_long_for_a_leader_whose_process_has_ended():
    async def test(cluster):
        *_, last = await cluster.form(3)
        observer = await cluster.start(4)
        leader = await cluster.leader()
        await observer.set(1)
        await leader.crash()
        await cluster.leader()
        await last.set(2)
        await observer.set(3)

    run(test, **SLOW)


def test_time_stands_still_for_the_core_while_the_quorum_state_is_saved(monkeypatch):
    """Or an election would be over before its first request has left."""
    save, save_s = QuorumStateFile.save, 0.3

    def save_slowly(self, state):
        time.sleep(save_s)
        save(self, state)

    monkeypatch.setattr(QuorumStateFile, "save", save_slowly)

    async def test(cluster):
        node = await cluster.start(1)
        await until(lambda: node.leads)
        driver = node.quorum.driver
        assert driver.time_of_day_ms(driver.now_ms()) - driver.now_ms() >= save_s * 1000

    run(test)


def test_a_process_that_did_not_run_for_a_while_keeps_its_leader():
    """All nodes are in this process: each finds that the others have been silent for long."""

    async def test(cluster):
        nodes = await cluster.form(3)
        leader = await cluster.leader()
        epoch = leader.core.state.epoch
        for number in range(1, 3):
            time.sleep(1.5)  # noqa: ASYNC251 - the event loop stands still
            await nodes[2].set(number)
            for node in nodes:
                await until(lambda node=node: node.partitions == str(number))  # noqa: B023
        assert leader.leads
        assert leader.core.state.epoch == epoch

    patience = {
        "controller.quorum.fetch.timeout.ms": 600,
        "controller.quorum.request.timeout.ms": 60_000,
    }
    run(test, **patience)


def test_a_call_through_a_leader_that_is_cut_off_is_answered_by_the_next_one():
    async def test(cluster):
        await cluster.form(3)
        leader = await cluster.leader()
        cluster.network.cut_off.add(leader.id)
        waiting = asyncio.ensure_future(leader.call(set_partitions(9)))
        new_leader = await cluster.leader(other_than=leader)
        await new_leader.set(8)
        cluster.network.cut_off.clear()
        await waiting
        assert leader.partitions == "9"

    run(test)


def test_without_a_controller_a_call_is_refused_when_its_time_is_over():
    async def test(cluster):
        node, other = await cluster.form(2)
        await other.crash()
        await until(lambda: not node.leads)
        with pytest.raises(ApiError) as refused:
            await node.call(set_partitions(1), timeout_ms=100)
        assert refused.value.code is ErrorCode.not_controller
        await cluster.start(other.id)
        await node.set(2)

    run(test)


def test_a_node_of_another_cluster_is_told_of_once(caplog):
    async def test(cluster):
        first = await cluster.start(1)
        await until(lambda: first.leads)
        stranger = await cluster.start(2, cluster_id="another")
        await until(lambda: "node1:9092 is a node of another cluster" in caplog.text)
        calls_count = cluster.network.calls_count
        await until(lambda: cluster.network.calls_count > calls_count + 5)
        assert caplog.text.count("of another cluster") == 1
        assert stranger.partitions is None

    run(test)


def test_who_must_run_is_said_when_there_is_no_leader(monkeypatch, caplog):
    monkeypatch.setattr(quorum, "_NO_LEADER_REPORT_S", 0.05)

    async def test(cluster):
        node, other = await cluster.form(2)
        reporting = asyncio.ensure_future(node.quorum.report_no_leader())
        await other.crash()
        await until(lambda: "voters must run: 1 at node1:9092, 2 at node2:9092" in caplog.text)
        reporting.cancel()

    run(test)


def test_a_node_that_was_away_catches_up_with_a_snapshot(monkeypatch):
    monkeypatch.setattr(metadata_snapshots, "RECORDS_MIN", 5)

    async def test(cluster):
        nodes = await cluster.form(3)
        leader = await cluster.leader()
        away = next(node for node in nodes if node != leader)
        await away.crash()
        end_offset = RaftLog.open(away.disk, "/data", 0).end_offset
        number = 0
        while leader.quorum.driver.log.start_offset <= end_offset:
            number += 1
            await leader.set(number)
        back = await cluster.start(away.id)
        replaced = []
        back.feed.listen(Listener(lambda *_: None, replaced.append))
        await until(lambda: back.partitions == str(number))
        assert replaced == [back.image]
        assert back.quorum.driver.log.start_offset > end_offset
        await leader.crash()
        await (await cluster.leader()).set(number + 1)
        await until(lambda: back.partitions == str(number + 1))

    run(test)
