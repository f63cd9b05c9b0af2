import pytest
from tests.runtime.machines import TextCodec

from ottla.runtime.snapshots import Snapshot, SnapshotStore
from ottla.storage.errors import StorageError
from ottla.storage.faulty_filesystem import FaultyFilesystem

CODEC = TextCodec()


@pytest.fixture
def filesystem():
    filesystem = FaultyFilesystem(seed=1)
    filesystem.make_directory("/log")
    return filesystem


@pytest.fixture
def store(filesystem):
    return SnapshotStore(filesystem, "/log")


def words(store, snapshot):
    return [record.value.decode() for record in store.read(snapshot)]


def test_there_is_none_at_first(store):
    assert store.newest() is None


def test_what_is_written_is_read(store, filesystem):
    snapshot = Snapshot(2500, 3)
    many = [f"word {number}" for number in range(2500)]
    store.write(snapshot, many, CODEC, now_ms=7)
    assert filesystem.list("/log") == ["00000000000000002500-0000000003.checkpoint"]
    assert store.newest() == snapshot
    assert words(store, snapshot) == many


def test_an_empty_state_has_a_snapshot(store):
    store.write(Snapshot(1, 1), [], CODEC, now_ms=7)
    assert words(store, Snapshot(1, 1)) == []


def test_a_newer_one_replaces_the_older(store, filesystem):
    store.write(Snapshot(9, 1), ["a"], CODEC, now_ms=7)
    store.write(Snapshot(10, 1), ["a", "b"], CODEC, now_ms=7)
    assert filesystem.list("/log") == ["00000000000000000010-0000000001.checkpoint"]


def test_other_files_are_left_alone(store, filesystem):
    filesystem.write_atomically("/log/00000000000000000000.log", b"x")
    assert store.newest() is None


@pytest.mark.parametrize("keep", [0, 40, -10])
def test_a_damaged_snapshot_is_refused(store, filesystem, keep):
    snapshot = Snapshot(9, 1)
    store.write(snapshot, ["a", "b"], CODEC, now_ms=7)
    path = f"/log/{snapshot.name}"
    filesystem.write_atomically(path, filesystem.read_bytes(path)[:keep])
    with pytest.raises(StorageError, match=r"0001\.checkpoint is damaged"):
        words(store, snapshot)


def test_a_flipped_bit_is_noticed(store, filesystem):
    snapshot = Snapshot(9, 1)
    store.write(snapshot, ["a", "b"], CODEC, now_ms=7)
    path = f"/log/{snapshot.name}"
    content = bytearray(filesystem.read_bytes(path))
    content[len(content) // 2] ^= 1
    filesystem.write_atomically(path, bytes(content))
    with pytest.raises(StorageError, match="damaged"):
        words(store, snapshot)
