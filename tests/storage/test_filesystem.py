"""The common behavior of filesystems, checked on both."""

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.filesystem import Filesystem
from ottla.storage.local_filesystem import LocalFilesystem


@pytest.fixture(params=["local", "faulty"])
def filesystem(request: pytest.FixtureRequest) -> Filesystem:
    return LocalFilesystem() if request.param == "local" else FaultyFilesystem()


@pytest.fixture
def directory(filesystem: Filesystem, tmp_path: Path) -> Iterator[str]:
    path = f"{tmp_path}/data"
    filesystem.make_directory(path)
    yield path
    filesystem.remove_tree(path)


def test_append_returns_where_the_data_starts(filesystem: Filesystem, directory: str) -> None:
    file = filesystem.open(f"{directory}/a", create=True)
    assert file.append(b"one") == 0
    assert file.append(memoryview(bytearray(b"two"))) == 3
    assert file.append_all([b"th", bytearray(b"re"), memoryview(b"e")]) == 6
    assert file.size == 11
    assert file.read(0, 100) == b"onetwothree"
    assert file.path == f"{directory}/a"
    file.close()


def test_append_all_takes_more_buffers_than_one_system_call(
    filesystem: Filesystem, directory: str
) -> None:
    file = filesystem.open(f"{directory}/a", create=True)
    assert file.append_all([b"xy"] * 3000) == 0
    assert file.size == 6000
    assert file.read(0, 9000) == b"xy" * 3000
    file.close()


def test_read_gives_fewer_bytes_only_at_the_end(filesystem: Filesystem, directory: str) -> None:
    file = filesystem.open(f"{directory}/a", create=True)
    file.append(b"0123456789")
    assert file.read(2, 3) == b"234"
    assert file.read(8, 5) == b"89"
    assert file.read(10, 5) == b""
    assert file.read(20, 5) == b""
    assert file.read_cached(2, 3) == b"234"
    assert file.read_cached(8, 5) == b"89"
    assert file.read_cached(20, 5) == b""
    file.close()


def test_write_at_overwrites_and_extends(filesystem: Filesystem, directory: str) -> None:
    file = filesystem.open(f"{directory}/a", create=True)
    file.append(b"0123")
    file.write_at(b"xx", 1)
    assert (file.size, file.read(0, 9)) == (4, b"0xx3")
    file.write_at(b"yyy", 3)
    assert (file.size, file.read(0, 9)) == (6, b"0xxyyy")
    file.close()


def test_truncate_moves_the_end(filesystem: Filesystem, directory: str) -> None:
    file = filesystem.open(f"{directory}/a", create=True)
    file.append(b"0123456789")
    file.truncate(4)
    assert file.append(b"x") == 4
    file.truncate(7)
    assert file.size == 7
    assert file.read(0, 9) == b"0123x\0\0"
    file.close()


def test_a_file_opened_again_has_its_content(filesystem: Filesystem, directory: str) -> None:
    file = filesystem.open(f"{directory}/a", create=True)
    file.append(b"kept")
    file.sync()
    file.close()
    again = filesystem.open(f"{directory}/a")
    assert again.size == 4
    assert again.append(b"!") == 4
    assert filesystem.read_bytes(f"{directory}/a") == b"kept!"
    assert filesystem.size(f"{directory}/a") == 5
    assert filesystem.modified_ms(f"{directory}/a") >= 0
    again.close()


def test_a_closed_file_refuses(filesystem: Filesystem, directory: str) -> None:
    file = filesystem.open(f"{directory}/a", create=True)
    file.close()
    file.close()
    for use in (
        lambda: file.append(b"x"),
        lambda: file.append_all([b"x"]),
        lambda: file.write_at(b"x", 0),
        lambda: file.truncate(0),
        lambda: file.sync(),
    ):
        with pytest.raises(OSError, match=r"closed|Bad file descriptor"):
            use()


def test_open_of_a_missing_file(filesystem: Filesystem, directory: str) -> None:
    with pytest.raises(FileNotFoundError):
        filesystem.open(f"{directory}/a")
    with pytest.raises(FileNotFoundError):
        filesystem.open(f"{directory}/missing/a", create=True)
    with pytest.raises(FileNotFoundError):
        filesystem.read_bytes(f"{directory}/a")
    with pytest.raises(FileNotFoundError):
        filesystem.size(f"{directory}/a")
    with pytest.raises(IsADirectoryError):
        filesystem.open(directory)


def test_names_in_a_directory(filesystem: Filesystem, directory: str) -> None:
    for name in ("b", "a"):
        filesystem.open(f"{directory}/{name}", create=True).close()
    filesystem.make_directory(f"{directory}/c/d")
    filesystem.make_directory(f"{directory}/c/d")
    assert filesystem.list(directory) == ["a", "b", "c"]
    assert filesystem.list(f"{directory}/c") == ["d"]
    assert filesystem.exists(f"{directory}/c/d")
    filesystem.remove(f"{directory}/a")
    assert filesystem.list(directory) == ["b", "c"]
    assert not filesystem.exists(f"{directory}/a")
    with pytest.raises(FileNotFoundError):
        filesystem.remove(f"{directory}/a")
    with pytest.raises(FileNotFoundError):
        filesystem.list(f"{directory}/missing")


def test_rename_replaces_the_target(filesystem: Filesystem, directory: str) -> None:
    filesystem.write_atomically(f"{directory}/a", b"new")
    filesystem.write_atomically(f"{directory}/b", b"old")
    filesystem.rename(f"{directory}/a", f"{directory}/b")
    filesystem.sync_directory(directory)
    assert filesystem.list(directory) == ["b"]
    assert filesystem.read_bytes(f"{directory}/b") == b"new"
    with pytest.raises(FileNotFoundError):
        filesystem.rename(f"{directory}/a", f"{directory}/b")


def test_an_open_file_survives_its_rename_and_its_removal(
    filesystem: Filesystem, directory: str
) -> None:
    file = filesystem.open(f"{directory}/a", create=True)
    file.append(b"still ")
    filesystem.rename(f"{directory}/a", f"{directory}/b")
    file.append(b"here")
    assert filesystem.read_bytes(f"{directory}/b") == b"still here"
    filesystem.remove(f"{directory}/b")
    assert file.read(0, 100) == b"still here"
    file.close()


def test_rename_of_a_directory_keeps_what_is_in_it(filesystem: Filesystem, directory: str) -> None:
    filesystem.make_directory(f"{directory}/topic-0")
    filesystem.write_atomically(f"{directory}/topic-0/a", b"1")
    filesystem.rename(f"{directory}/topic-0", f"{directory}/topic-0.delete")
    assert filesystem.read_bytes(f"{directory}/topic-0.delete/a") == b"1"
    assert filesystem.list(directory) == ["topic-0.delete"]


def test_remove_tree(filesystem: Filesystem, directory: str) -> None:
    filesystem.make_directory(f"{directory}/c/d")
    filesystem.write_atomically(f"{directory}/c/d/a", b"1")
    filesystem.remove_tree(f"{directory}/c")
    filesystem.remove_tree(f"{directory}/c")
    assert filesystem.list(directory) == []


def test_write_atomically_leaves_no_temporary_file(filesystem: Filesystem, directory: str) -> None:
    filesystem.write_atomically(f"{directory}/a", b"a longer first content")
    filesystem.write_atomically(f"{directory}/a", b"second")
    assert filesystem.list(directory) == ["a"]
    assert filesystem.read_bytes(f"{directory}/a") == b"second"


def test_a_lock_knows_whether_its_file_is_the_one_at_its_path(
    filesystem: Filesystem, directory: str
) -> None:
    path = f"{directory}/.lock"
    lock = filesystem.lock(path)
    assert lock.is_in_place()
    filesystem.remove(path)
    assert not lock.is_in_place()
    filesystem.open(path, create=True).close()
    assert not lock.is_in_place()
    lock.release()


def test_a_lock_excludes_until_it_is_released(filesystem: Filesystem, directory: str) -> None:
    lock = filesystem.lock(f"{directory}/.lock")
    with pytest.raises(BlockingIOError) as raised:
        filesystem.lock(f"{directory}/.lock")
    assert raised.value.errno == errno.EAGAIN
    lock.release()
    lock.release()
    filesystem.lock(f"{directory}/.lock").release()
