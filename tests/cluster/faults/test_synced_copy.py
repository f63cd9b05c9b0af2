"""After a power loss only synced contents remain, under synced names."""

from pathlib import Path

import pytest
from tests.cluster.faults.synced_copy import CopyingFilesystem, lose_unsynced


@pytest.fixture
def disk(tmp_path: Path) -> CopyingFilesystem:
    made = CopyingFilesystem(tmp_path / "copy")
    made.make_directory(str(tmp_path / "data"))
    return made


def after_loss(tmp_path: Path) -> dict[str, bytes]:
    data = tmp_path / "data"
    lose_unsynced(data, tmp_path / "copy")
    files = [path for path in data.rglob("*") if path.is_file()]
    return {str(path.relative_to(data)): path.read_bytes() for path in files}


def test_only_what_was_synced_is_there(disk: CopyingFilesystem, tmp_path: Path) -> None:
    file = disk.open(str(tmp_path / "data" / "log"), create=True)
    disk.sync_directory(str(tmp_path / "data"))
    file.append(b"synced")
    file.sync()
    file.append(b" and not")
    disk.open(str(tmp_path / "data" / "unnamed"), create=True).sync()
    assert after_loss(tmp_path) == {"log": b"synced"}


def test_a_file_that_was_cut_and_written_again(disk: CopyingFilesystem, tmp_path: Path) -> None:
    file = disk.open(str(tmp_path / "data" / "log"), create=True)
    disk.sync_directory(str(tmp_path / "data"))
    file.append(b"one two")
    file.sync()
    file.truncate(4)
    file.append(b"3")
    file.sync()
    assert after_loss(tmp_path) == {"log": b"one 3"}


def test_names_change_when_their_directory_is_synced(
    disk: CopyingFilesystem, tmp_path: Path
) -> None:
    data = str(tmp_path / "data")
    disk.write_atomically(f"{data}/state", b"old")
    disk.write_atomically(f"{data}/gone", b"x")
    disk.sync_directory(data)
    disk.remove(f"{data}/gone")
    file = disk.open(f"{data}/state.tmp", create=True)
    file.append(b"new")
    file.sync()
    disk.rename(f"{data}/state.tmp", f"{data}/state")
    assert after_loss(tmp_path) == {"state": b"old", "gone": b"x"}


def test_a_second_loss_keeps_what_the_first_left(tmp_path: Path, disk: CopyingFilesystem) -> None:
    path = str(tmp_path / "data" / "state")
    disk.write_atomically(path, b"first")
    assert after_loss(tmp_path) == {"state": b"first"}
    again = CopyingFilesystem(tmp_path / "copy")
    again.open(path).append(b", unsynced")
    assert after_loss(tmp_path) == {"state": b"first"}
