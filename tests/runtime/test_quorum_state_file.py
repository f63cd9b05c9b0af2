from uuid import UUID

import pytest

from ottla.raft.quorum_state import QuorumState
from ottla.raft.voters import ReplicaKey
from ottla.runtime.quorum_state_file import QuorumStateFile
from ottla.storage.errors import StorageError
from ottla.storage.faulty_filesystem import FaultyFilesystem

STATE = QuorumState(leader_epoch=3, leader_id=None, voted=ReplicaKey(2, UUID(int=2)))


@pytest.fixture
def disk() -> FaultyFilesystem:
    disk = FaultyFilesystem(seed=1)
    disk.make_directory("/log")
    return disk


def test_there_is_none_at_first(disk: FaultyFilesystem) -> None:
    assert QuorumStateFile(disk, "/log").load() is None


def test_what_was_saved_survives_a_crash(disk: FaultyFilesystem) -> None:
    QuorumStateFile(disk, "/log").save(STATE)
    disk.crash()
    assert QuorumStateFile(disk, "/log").load() == STATE


@pytest.mark.parametrize("seed", range(8))
def test_what_was_loaded_after_a_failed_save_survives_a_power_loss(seed: int) -> None:
    disk = FaultyFilesystem(seed)
    disk.make_directory("/log")
    state_file = QuorumStateFile(disk, "/log")
    state_file.save(QuorumState(leader_epoch=2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk, "sync_directory", failing)  # The file is written, but not renamed.
        with pytest.raises(OSError, match="injected"):
            state_file.save(STATE)
    loaded = state_file.load()
    disk.crash()
    assert state_file.load() == loaded


def failing(_path: str) -> None:
    raise OSError("injected")


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b"[1]"])
def test_a_damaged_file_is_refused(disk: FaultyFilesystem, content: bytes) -> None:
    disk.write_atomically("/log/quorum-state", content)
    with pytest.raises(StorageError, match=r"not a quorum-state file|can't decode"):
        QuorumStateFile(disk, "/log").load()
