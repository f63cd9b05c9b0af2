"""One bit of any metadata file is wrong: the log is unchanged, or it is refused."""

from uuid import UUID

import pytest
from tests.runtime.machines import TextCodec

from ottla.raft.control_records import control_batch, leader_change, voters_record
from ottla.raft.log import OffsetAndEpoch
from ottla.raft.quorum_state import QuorumState
from ottla.raft.voters import ReplicaKey, Voter, VoterSet
from ottla.records.batch import HEADER_SIZE, assign, iterate_headers
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import iterate_records
from ottla.runtime.quorum_state_file import QuorumStateFile
from ottla.runtime.raft_log import RaftLog, metadata_directory
from ottla.runtime.recovery_point import RECOVERY_POINT
from ottla.storage.errors import StorageError
from ottla.storage.faulty_filesystem import FaultyFilesystem

DIRECTORY = metadata_directory("/data")
VOTERS = VoterSet.of([Voter(ReplicaKey(1, UUID(int=1)))])
BITS = 8
SNAPSHOT = 4  # Per observed value.
STEP = 3  # Not all positions, so that it takes seconds.


def append(log: RaftLog, batch: bytearray, epoch: int) -> None:
    assign(batch, 0, log.end_offset, epoch)
    log.append(batch)


def append_words(log: RaftLog, epoch: int, *words: str) -> None:
    append(log, build_batch([Record(timestamp=1000, value=word.encode()) for word in words]), epoch)
    log.flush()


def begin_epoch(log: RaftLog, epoch: int) -> None:
    records = [leader_change(1, VOTERS, [1]), voters_record(VOTERS)]
    append(log, control_batch(records, 1000), epoch)


def fill(disk: FaultyFilesystem) -> RaftLog:
    """Two segments with a snapshot between them, and three epochs."""
    log = RaftLog.open(disk, "/data", 0)
    QuorumStateFile(disk, DIRECTORY).save(QuorumState(5, None, ReplicaKey(1, UUID(int=1))))
    begin_epoch(log, 1)
    append_words(log, 1, "a", "b")
    begin_epoch(log, 4)
    append_words(log, 4, "c")
    snapshot_id = OffsetAndEpoch(log.end_offset, 4)
    size = log.snapshots.write(snapshot_id, VOTERS, ["state"], TextCodec(), 0)
    log.roll()
    log.on_snapshot_written(snapshot_id, size)
    append_words(log, 4, "d", "e")
    begin_epoch(log, 5)
    append_words(log, 5, "f")
    append_words(log, 5, "g")
    return log


def seen(disk: FaultyFilesystem) -> tuple[object, ...]:
    """Everything that a node reads of it at startup."""
    log = RaftLog.open(disk, "/data", 0)
    snapshot_id = log.latest_snapshot_id
    snapshot = None if snapshot_id is None else log.snapshots.read(snapshot_id)
    data = b"".join(log._read_from(log.start_offset))
    found = (
        log.start_offset,
        log.end_offset,
        [
            (header.base_offset, header.partition_leader_epoch, record.value)
            for position, header in iterate_headers(data)
            for record in iterate_records(data, position)
        ],
        [log.epoch_of(offset) for offset in range(log.end_offset)],
        snapshot and ([record.value for record in snapshot.records], snapshot.voters),
        log.voters(VoterSet()).latest,
        QuorumStateFile(disk, DIRECTORY).load(),
    )
    log.close()
    return found


@pytest.fixture(params=["stop", "kill"])
def disk(request: pytest.FixtureRequest) -> FaultyFilesystem:
    disk = FaultyFilesystem(seed=3)
    log = fill(disk)
    if request.param == "stop":
        log.close()
    else:
        disk.kill()
    return disk


def copied(disk: FaultyFilesystem) -> FaultyFilesystem:
    copy = FaultyFilesystem()
    copy.make_directory(DIRECTORY)
    for name in disk.list(DIRECTORY):
        copy.write_atomically(f"{DIRECTORY}/{name}", disk.read_bytes(f"{DIRECTORY}/{name}"))
    return copy


def test_a_flipped_bit_is_refused_or_changes_nothing(disk: FaultyFilesystem) -> None:
    whole = seen(copied(disk))
    without_snapshot = (*whole[:SNAPSHOT], None, *whole[SNAPSHOT + 1 :])  # The log has all of it.
    changed, refused = [], 0
    for name in disk.list(DIRECTORY):
        for position in range(0, disk.size(f"{DIRECTORY}/{name}"), STEP):
            damaged = copied(disk)
            damaged.flip_bit(f"{DIRECTORY}/{name}", position, position % BITS)
            try:
                expected = without_snapshot if name.endswith(".checkpoint") else whole
                if seen(damaged) not in (whole, expected):
                    changed.append((name, position))
            except StorageError:
                refused += 1
    assert not changed
    assert refused > 0


def test_a_torn_end_that_was_never_synced_is_cut_off(disk: FaultyFilesystem) -> None:
    whole = seen(copied(disk))
    path = f"{DIRECTORY}/{max(name for name in disk.list(DIRECTORY) if name.endswith('.log'))}"
    disk.write_atomically(path, disk.read_bytes(path) + b"\1" * (HEADER_SIZE + 5))
    assert seen(disk) == whole


def test_damage_is_refused_with_what_to_do_and_nothing_is_lost(disk: FaultyFilesystem) -> None:
    path = f"{DIRECTORY}/{0:020d}.log"
    before = bytes(disk.read_bytes(path))
    disk.flip_bit(path, len(before) // 2)
    for _ in range(2):
        with pytest.raises(StorageError, match=r"/data.*\.log is corrupt.*--join.*backup"):
            RaftLog.open(disk, "/data", 0)
    disk.flip_bit(path, len(before) // 2)
    assert disk.read_bytes(path) == before
    seen(disk)


@pytest.mark.parametrize("content", [b"", b"\xff" * 128, b"offset 3 epoch"])
def test_without_a_recovery_point_no_damage_is_cut_off(
    disk: FaultyFilesystem, content: bytes
) -> None:
    whole = seen(copied(disk))
    disk.write_atomically(f"{DIRECTORY}/{RECOVERY_POINT}", content)
    assert seen(copied(disk)) == whole
    path = f"{DIRECTORY}/{max(name for name in disk.list(DIRECTORY) if name.endswith('.log'))}"
    disk.write_atomically(path, disk.read_bytes(path)[:-3])
    with pytest.raises(StorageError, match="backup"):
        seen(disk)
