import contextlib
import errno
import os
import threading
from pathlib import Path

import pytest

from ottla.storage.local_filesystem import LocalFile, LocalFilesystem


@pytest.fixture
def file(tmp_path: Path) -> LocalFile:
    return LocalFilesystem().open(f"{tmp_path}/a", create=True)


def test_a_partial_write_is_continued(file: LocalFile, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: write(fd, data[:3], at))
    monkeypatch.setattr(os, "pwritev", lambda fd, data, at: write(fd, data[0][:1], at))
    assert file.append(b"0123456789") == 0
    assert file.append_all([b"abc", b"defg"]) == 10
    file.write_at(b"WXYZ", 5)
    assert file.read(0, 100) == b"01234WXYZ9abcdefg"
    file.close()


@pytest.mark.parametrize("method", ["append", "append_all"])
def test_a_full_disk_leaves_the_file_as_it_was(
    file: LocalFile, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    file.append(b"kept")
    real_write = os.pwrite
    room = 6

    def pwrite(descriptor: int, data: memoryview, position: int) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, "no space")
        written = real_write(descriptor, data[:room], position)
        room -= written
        return written

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", pwrite)
        patch.setattr(
            os, "pwritev", lambda fd, data, at: pwrite(fd, memoryview(b"".join(data)), at)
        )
        with pytest.raises(OSError, match="no space"):
            getattr(file, method)(b"0123456789" if method == "append" else [b"01234", b"56789"])
    assert file.size == 4
    assert Path(file.path).read_bytes() == b"kept"
    assert file.append(b"!") == 4
    assert Path(file.path).read_bytes() == b"kept!"
    file.close()


def test_read_cached_is_none_when_the_disk_must_be_waited_for(
    file: LocalFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.append(b"0123456789")

    def preadv(*arguments: object) -> int:
        raise BlockingIOError(errno.EAGAIN, "not in the page cache")

    monkeypatch.setattr(os, "preadv", preadv)
    assert file.read_cached(0, 10) is None
    monkeypatch.setattr(os, "preadv", lambda *arguments: 4)
    assert file.read_cached(0, 10) is None
    file.close()


def test_read_cached_reads_where_the_system_cannot_tell(
    file: LocalFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.append(b"0123456789")

    def preadv(*arguments: object) -> int:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(os, "preadv", preadv)
    assert file.read_cached(3, 3) == b"345"
    assert file.read_cached(3, 3) == b"345"
    file.close()


def test_close_waits_for_a_read_under_way(file: LocalFile, monkeypatch: pytest.MonkeyPatch) -> None:
    file.append(b"0123456789")
    reading, closed = threading.Event(), threading.Event()
    real_read = os.pread
    results: list[bytes] = []

    def pread(descriptor: int, size: int, position: int) -> bytes:
        reading.set()
        assert closed.wait(60)
        return real_read(descriptor, size, position)

    monkeypatch.setattr(os, "pread", pread)
    thread = threading.Thread(target=lambda: results.append(file.read(0, 10)))
    thread.start()
    assert reading.wait(60)
    file.close()
    closed.set()
    thread.join()
    assert results == [b"0123456789"]
    assert file.fileno() == -1
    with pytest.raises(OSError, match="closed"):
        file.read(0, 10)
    with pytest.raises(OSError, match="closed"):
        file.read_cached(0, 10)


def test_a_file_that_nobody_refers_to_is_closed(tmp_path: Path) -> None:
    file = LocalFilesystem().open(f"{tmp_path}/a", create=True)
    descriptor = file.fileno()
    assert descriptor is not None
    status = os.fstat(descriptor)
    del file
    with contextlib.suppress(OSError):  # Another thread may have the number by now.
        assert not os.path.samestat(os.fstat(descriptor), status)
