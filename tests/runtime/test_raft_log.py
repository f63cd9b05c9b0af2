from uuid import UUID

import pytest
from tests.runtime.machines import TextCodec

from ottla.raft.control_records import control_batch, kraft_version, leader_change, voters_record
from ottla.raft.log import OffsetAndEpoch
from ottla.raft.voters import ReplicaKey, Voter, VoterSet
from ottla.records.batch import assign, iterate_headers, read_header
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import iterate_records
from ottla.runtime.raft_log import RaftLog, metadata_directory
from ottla.runtime.snapshots import snapshot_name
from ottla.storage.errors import DamagedMetadata, StorageError
from ottla.storage.faulty_filesystem import FaultyFilesystem

DIRECTORY = metadata_directory("/data")
NOBODY = VoterSet()


def voters(*ids: int) -> VoterSet:
    return VoterSet.of(Voter(ReplicaKey(number, UUID(int=number))) for number in ids)


class Bench:
    def __init__(self) -> None:
        self.disk = FaultyFilesystem(seed=5)
        self.log = self.open()

    def open(self) -> RaftLog:
        self.log = RaftLog.open(self.disk, "/data", 0)
        return self.log

    def append(self, epoch: int, *words: str) -> None:
        """The first batch of an epoch is its leader's."""
        begins = epoch > self.log.epoch_of(self.log.end_offset - 1)
        batch = build_batch(
            [
                Record(timestamp=1000, key=b"\0\0\0\2" if begins else None, value=word.encode())
                for word in words
            ],
            control=begins,
        )
        self.append_batch(batch, epoch)

    def append_batch(self, batch: bytearray, epoch: int) -> None:
        assign(batch, 0, self.log.end_offset, epoch)
        self.log.append(batch)

    def words(self, offset: int | None = None) -> list[str]:
        log = self.log
        offset = log.start_offset if offset is None else offset
        found: list[str] = []
        while offset < log.end_offset:
            read = log.read(offset, 1 << 16, log.end_offset)
            for position, header in iterate_headers(read.data):
                if header.base_offset >= offset:
                    found += [
                        (record.value or b"").decode()
                        for record in iterate_records(read.data, position)
                    ]
            offset = read.next_offset
        return found

    def take_snapshot(self, offset: int, voter_set: VoterSet = NOBODY) -> OffsetAndEpoch:
        log = self.log
        snapshot_id = OffsetAndEpoch(offset, log.epoch_of(offset - 1))
        size = log.snapshots.write(snapshot_id, voter_set, ["state"], TextCodec(), 0)
        log.roll()
        log.sync_recovery_point()
        log.on_snapshot_written(snapshot_id, size)
        log.remove_passed()
        return snapshot_id


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_it_begins_empty(bench: Bench) -> None:
    log = bench.log
    assert (log.start_offset, log.end_offset) == (0, 0)
    assert log.epoch_of(-1) == 0
    assert log.end_offset_for_epoch(7) == OffsetAndEpoch(0, 0)
    assert log.latest_snapshot_id is None


def test_epochs_are_found_by_offset_and_ends_by_epoch(bench: Bench) -> None:
    bench.append(1, "a", "b")
    bench.append(1, "c")
    bench.append(4, "d")
    log = bench.log
    assert [log.epoch_of(offset) for offset in range(-1, 4)] == [0, 1, 1, 1, 4]
    ends = {epoch: log.end_offset_for_epoch(epoch) for epoch in (0, 1, 2, 3, 4, 9)}
    assert ends == {
        0: OffsetAndEpoch(0, 0),
        1: OffsetAndEpoch(3, 1),
        2: OffsetAndEpoch(3, 1),
        3: OffsetAndEpoch(3, 1),
        4: OffsetAndEpoch(4, 4),
        9: OffsetAndEpoch(4, 4),
    }


def test_cutting_takes_the_epochs_along(bench: Bench) -> None:
    bench.append(1, "a")
    bench.append(2, "b")
    bench.append(3, "c")
    count = bench.log.truncations_count
    bench.log.truncate_to(1)
    assert bench.log.truncations_count > count
    assert bench.log.end_offset_for_epoch(3) == OffsetAndEpoch(1, 1)
    bench.append(5, "d")
    assert bench.words() == ["a", "d"]
    assert bench.log.epoch_of(1) == 5


def test_what_was_flushed_survives_a_crash(bench: Bench) -> None:
    bench.append(1, "a")
    bench.append(2, "b")
    assert bench.log.flush() == 2
    bench.disk.crash()
    bench.open()
    assert bench.words() == ["a", "b"]
    assert bench.log.epoch_of(0) == 1
    assert bench.log.epoch_of(1) == 2


def test_a_log_that_was_opened_after_a_failed_sync_survives_a_power_loss(bench: Bench) -> None:
    bench.append(1, "a")
    assert bench.log.flush() == 1
    bench.append(1, "b")
    bench.disk.fail_next_sync()
    with pytest.raises(StorageError):
        bench.log.flush()
    bench.disk.kill()
    bench.open()
    assert bench.words() == ["a", "b"]
    bench.disk.crash()
    bench.open()
    assert bench.words() == ["a", "b"]


def test_after_the_first_snapshot_the_log_stays_after_the_second_it_starts_at_the_first(
    bench: Bench,
) -> None:
    bench.append(1, "a", "b")
    bench.log.flush()
    first = bench.take_snapshot(2)
    assert bench.log.start_offset == 0
    assert bench.words() == ["a", "b"]
    bench.append(2, "c")
    bench.log.flush()
    second = bench.take_snapshot(3)
    assert bench.log.start_offset == 2
    assert bench.log.epoch_of(1) == 1
    assert bench.words() == ["c"]
    assert list(bench.log.snapshots.list()) == [first, second]
    bench.append(2, "d")
    bench.log.flush()
    third = bench.take_snapshot(4)
    assert list(bench.log.snapshots.list()) == [second, third]
    assert bench.log.latest_snapshot_id == third
    assert bench.log.snapshot_size(third) == bench.log.snapshots.list()[third]
    assert bench.log.snapshot_size(first) is None
    bench.disk.crash()
    bench.open()
    assert bench.log.start_offset == 3
    assert bench.log.epoch_of(2) == 2
    assert bench.words() == ["d"]


@pytest.mark.parametrize("snapshots_count", [1, 2])
def test_a_damaged_snapshot_is_done_without_if_the_log_has_what_it_has(
    bench: Bench, snapshots_count: int
) -> None:
    bench.append(1, "a", "b", "c", "d")
    bench.log.flush()
    taken = [bench.take_snapshot(offset) for offset in (2, 3)[:snapshots_count]]
    bench.log.close()
    bench.disk.flip_bit(f"{DIRECTORY}/{snapshot_name(taken[-1])}", 80)
    log = bench.open()
    assert log.latest_snapshot_id == (taken[0] if snapshots_count > 1 else None)
    assert log.end_offset == 4
    assert bench.disk.exists(f"{DIRECTORY}/{snapshot_name(taken[-1])}.damaged")


def test_a_damaged_snapshot_that_nothing_stands_for_stops_the_start(bench: Bench) -> None:
    bench.append(1, "a", "b")
    snapshot_id = OffsetAndEpoch(9, 2)
    install(bench, snapshot_id)
    bench.log.close()
    bench.disk.flip_bit(f"{DIRECTORY}/{snapshot_name(snapshot_id)}", 80)
    with pytest.raises(DamagedMetadata, match="is damaged"):
        bench.open()


def test_what_came_after_a_snapshot_survives_a_crash(bench: Bench) -> None:
    bench.append(1, "a", "b")
    bench.log.flush()
    bench.take_snapshot(2)
    bench.append(1, "c")
    bench.log.flush()
    bench.disk.crash()
    bench.open()
    assert bench.words(offset=2) == ["c"]


def test_without_the_file_of_the_epochs_they_are_read_from_the_batches(bench: Bench) -> None:
    bench.append(1, "a", "b")
    bench.append(2, "c")
    bench.log.flush()
    bench.take_snapshot(3)
    bench.append(2, "d")
    bench.log.close()
    bench.disk.remove(f"{DIRECTORY}/leader-epoch-checkpoint")
    bench.open()
    assert bench.words() == ["a", "b", "c", "d"]
    assert [bench.log.epoch_of(offset) for offset in range(4)] == [1, 1, 2, 2]


def install(bench: Bench, snapshot_id: OffsetAndEpoch) -> None:
    size = bench.log.snapshots.write(snapshot_id, voters(1), ["state"], TextCodec(), 0)
    bench.log.restart_at(snapshot_id, size)


def test_a_snapshot_of_another_node_replaces_the_log(bench: Bench) -> None:
    bench.append(1, "a")
    bench.append(3, "b")
    install(bench, OffsetAndEpoch(10, 2))
    log = bench.log
    assert (log.start_offset, log.end_offset) == (10, 10)
    assert log.epoch_of(9) == 2
    assert log.end_offset_for_epoch(5) == OffsetAndEpoch(10, 2)
    bench.append(2, "k")
    assert log.epoch_of(10) == 2
    assert log.end_offset_for_epoch(2) == OffsetAndEpoch(11, 2)
    log.flush()
    bench.disk.crash()
    bench.open()
    assert bench.words() == ["k"]
    assert bench.log.epoch_of(9) == 2


@pytest.mark.parametrize("end_offset", [1, 3])
def test_a_crash_right_after_the_snapshot_got_its_name_leaves_it_in_place(
    bench: Bench, end_offset: int
) -> None:
    """Whether the log was shorter, or longer with another history."""
    bench.append(1, *"abc"[:end_offset])
    bench.log.flush()
    snapshot_id = OffsetAndEpoch(2, 4)
    bench.log.expect_snapshot(snapshot_id)
    bench.log.snapshots.write(snapshot_id, voters(1), ["state"], TextCodec(), 0)
    bench.disk.crash()
    bench.open()
    assert (bench.log.start_offset, bench.log.end_offset) == (2, 2)
    assert bench.log.epoch_of(1) == 4


def test_a_log_that_continues_a_snapshot_stays(bench: Bench) -> None:
    bench.append(1, "a", "b")
    bench.append(2, "c")
    bench.log.flush()
    bench.log.snapshots.write(OffsetAndEpoch(2, 1), voters(1), ["state"], TextCodec(), 0)
    bench.disk.crash()
    bench.open()
    assert bench.words() == ["a", "b", "c"]


def test_voters_come_from_the_snapshot_and_the_log_after_it(bench: Bench) -> None:
    assert bench.log.voters(voters(7)).latest == voters(7)
    bench.append_batch(
        control_batch(
            [leader_change(1, voters(1), [1]), kraft_version(), voters_record(voters(1))], 0
        ),
        1,
    )
    assert bench.log.voters(voters(7)).latest == voters(1)
    bench.append_batch(control_batch([voters_record(voters(1, 2))], 0), 1)
    bench.append(1, "a")
    bench.log.flush()
    bench.take_snapshot(5, voters(1, 2))
    history = bench.log.voters(voters(7))
    assert history.latest == voters(1, 2)
    assert history.latest_offset == 4
    bench.append_batch(control_batch([voters_record(voters(1, 2, 3))], 0), 1)
    history = bench.log.voters(voters(7))
    assert history.latest == voters(1, 2, 3)
    history.truncate_to(5)
    assert history.latest == voters(1, 2)


def test_a_log_whose_beginning_no_snapshot_has_is_refused(bench: Bench) -> None:
    bench.append(1, "a", "b")
    bench.log.flush()
    bench.take_snapshot(2)
    bench.append(1, "c")
    bench.log.flush()
    bench.take_snapshot(3)
    for name in bench.disk.list(DIRECTORY):
        if name.endswith(".checkpoint"):
            bench.disk.remove(f"{DIRECTORY}/{name}")
    with pytest.raises(StorageError, match="no snapshot has what is before"):
        bench.open()


def test_a_log_that_lost_what_was_committed_is_refused(bench: Bench) -> None:
    bench.append(1, "a", "b")
    bench.append(1, "c")
    bench.log.flush()
    path = f"{DIRECTORY}/{0:020d}.log"
    content = bench.disk.read_bytes(path)
    bench.disk.write_atomically(path, content[: read_header(content).size])
    with pytest.raises(StorageError, match="ends at offset 2, and it had reached 3"):
        bench.open()


def test_a_snapshot_that_was_being_fetched_is_forgotten(bench: Bench) -> None:
    bench.log.snapshots.write_part(OffsetAndEpoch(9, 1), 0, b"half")
    bench.open()
    assert not [name for name in bench.disk.list(DIRECTORY) if "part" in name]


def test_nothing_counts_as_synced_in_a_directory_that_is_gone(bench: Bench) -> None:
    bench.append(1, "a")
    bench.log.watch_directory(lambda: True)
    assert bench.log.flush() == 1
    bench.log.watch_directory(lambda: False)
    bench.append(1, "b")
    with pytest.raises(StorageError, match="removed or replaced"):
        bench.log.flush()
    assert not bench.log.is_online
