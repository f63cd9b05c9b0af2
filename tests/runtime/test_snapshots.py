from collections.abc import Iterator
from uuid import UUID

import pytest
from tests.runtime.machines import TextCodec

from ottla.raft.log import OffsetAndEpoch
from ottla.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from ottla.records.batch import iterate_headers
from ottla.records.builder import Record, build_batch
from ottla.runtime.snapshots import SnapshotStore, snapshot_name
from ottla.storage.errors import StorageError
from ottla.storage.faulty_filesystem import FaultyFilesystem

CODEC = TextCodec()
VOTERS = VoterSet.of(
    [Voter(ReplicaKey(1, UUID(int=7)), (Endpoint("PLAINTEXT", "localhost", 9092),))]
)


@pytest.fixture
def filesystem() -> FaultyFilesystem:
    filesystem = FaultyFilesystem(seed=1)
    filesystem.make_directory("/log")
    return filesystem


@pytest.fixture
def store(filesystem: FaultyFilesystem) -> SnapshotStore:
    return SnapshotStore(filesystem, "/log")


def write(store: SnapshotStore, snapshot_id: OffsetAndEpoch, words: list[str]) -> int:
    return store.write(snapshot_id, VOTERS, words, CODEC, now_ms=7)


def words(store: SnapshotStore, snapshot_id: OffsetAndEpoch) -> list[str]:
    return [(record.value or b"").decode() for record in store.read(snapshot_id).records]


def path_of(snapshot_id: OffsetAndEpoch) -> str:
    return f"/log/{snapshot_name(snapshot_id)}"


def test_there_is_none_at_first(store: SnapshotStore) -> None:
    assert store.list() == {}


def test_what_is_written_is_read(store: SnapshotStore, filesystem: FaultyFilesystem) -> None:
    snapshot_id = OffsetAndEpoch(2500, 3)
    many = [f"word {number}" for number in range(2500)]
    size = write(store, snapshot_id, many)
    assert filesystem.list("/log") == ["00000000000000002500-0000000003.checkpoint"]
    assert store.list() == {snapshot_id: size}
    assert words(store, snapshot_id) == many
    assert store.read(snapshot_id).voters == VOTERS


def test_its_batches_follow_each_other_and_have_its_epoch(
    store: SnapshotStore, filesystem: FaultyFilesystem
) -> None:
    snapshot_id = OffsetAndEpoch(2500, 3)
    write(store, snapshot_id, [str(number) for number in range(1500)])
    headers = [header for _, header in iterate_headers(filesystem.read_bytes(path_of(snapshot_id)))]
    assert [header.base_offset for header in headers] == [0, 3, 1003, 1503]
    assert {header.partition_leader_epoch for header in headers} == {3}


def test_an_empty_state_has_a_snapshot(store: SnapshotStore) -> None:
    write(store, OffsetAndEpoch(1, 1), [])
    assert words(store, OffsetAndEpoch(1, 1)) == []


def test_they_are_listed_and_removed_by_age(store: SnapshotStore) -> None:
    older, newer = OffsetAndEpoch(9, 2), OffsetAndEpoch(10, 1)
    write(store, newer, ["a", "b"])
    write(store, older, ["a"])
    assert list(store.list()) == [older, newer]
    store.remove_before(newer)
    assert list(store.list()) == [newer]


def test_other_files_are_left_alone(store: SnapshotStore, filesystem: FaultyFilesystem) -> None:
    filesystem.write_atomically("/log/00000000000000000000.log", b"x")
    store.remove_before(OffsetAndEpoch(100, 1))
    store.remove_parts()
    assert filesystem.list("/log") == ["00000000000000000000.log"]
    assert store.list() == {}


def test_one_from_before_there_was_a_quorum_says_nothing_of_voters(
    store: SnapshotStore, filesystem: FaultyFilesystem
) -> None:
    snapshot_id = OffsetAndEpoch(9, 1)
    write(store, snapshot_id, ["a"])
    content = filesystem.read_bytes(path_of(snapshot_id))
    (_, header), *_ = iterate_headers(content)
    plain = build_batch([Record(key=b"\0\0\0\3", value=b"\0\0" + bytes(9))], control=True)
    filesystem.write_atomically(path_of(snapshot_id), plain + content[header.size :])
    assert store.read(snapshot_id).voters is None
    assert words(store, snapshot_id) == ["a"]


@pytest.mark.parametrize("keep", [0, 40, -10])
def test_a_damaged_snapshot_is_refused(
    store: SnapshotStore, filesystem: FaultyFilesystem, keep: int
) -> None:
    snapshot_id = OffsetAndEpoch(9, 1)
    write(store, snapshot_id, ["a", "b"])
    path = path_of(snapshot_id)
    filesystem.write_atomically(path, filesystem.read_bytes(path)[:keep])
    with pytest.raises(StorageError, match=r"0001\.checkpoint is damaged"):
        store.read(snapshot_id)


def test_a_flipped_bit_is_noticed(store: SnapshotStore, filesystem: FaultyFilesystem) -> None:
    snapshot_id = OffsetAndEpoch(9, 1)
    write(store, snapshot_id, ["a", "b"])
    path = path_of(snapshot_id)
    content = bytearray(filesystem.read_bytes(path))
    content[len(content) // 2] ^= 1
    filesystem.write_atomically(path, bytes(content))
    with pytest.raises(StorageError, match="damaged"):
        store.read(snapshot_id)


def parts(
    store: SnapshotStore, snapshot_id: OffsetAndEpoch, size: int
) -> Iterator[tuple[int, bytes]]:
    total = store.list()[snapshot_id]
    for position in range(0, total, size):
        yield position, store.read_range(snapshot_id, position, size)


def test_one_of_another_node_is_put_together_from_its_parts(store: SnapshotStore) -> None:
    snapshot_id = OffsetAndEpoch(9, 1)
    write(store, snapshot_id, ["a", "b"])
    disk = FaultyFilesystem(seed=2)
    disk.make_directory("/log")
    other = SnapshotStore(disk, "/log")
    other.write_part(snapshot_id, 0, b"of an earlier attempt that was given up")
    for position, data in parts(store, snapshot_id, 50):
        other.write_part(snapshot_id, position, data)
    assert other.list() == {}
    assert other.read_part(snapshot_id) == store.read(snapshot_id)
    assert other.finish_part(snapshot_id) == store.list()[snapshot_id]
    disk.crash()
    assert other.read(snapshot_id) == store.read(snapshot_id)


def test_parts_that_were_left_are_removed(
    store: SnapshotStore, filesystem: FaultyFilesystem
) -> None:
    store.write_part(OffsetAndEpoch(9, 1), 0, b"half")
    with pytest.raises(StorageError, match="damaged"):
        store.read_part(OffsetAndEpoch(9, 1))
    store.remove_parts()
    assert filesystem.list("/log") == []
