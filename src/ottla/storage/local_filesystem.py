"""The operating system's files.

A descriptor is closed only when no read or sync uses it, so that a thread that is still reading
never meets the number of a file opened later.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path

from ottla.storage.filesystem import Buffer, parent_of, write_atomically

_CLOSED = -1
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_BUFFERS_PER_WRITE = os.sysconf("SC_IOV_MAX")
_SCRATCH_BYTES_MAX = 4 * 1024 * 1024
_UNSUPPORTED = {errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}


class LocalFile:
    __slots__ = ("_closing", "_descriptor", "_guard", "_nowait", "_users_count", "path", "size")

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._guard = threading.Lock()
        self._users_count = 0  # Reads and syncs in progress.
        self._closing = False
        self._nowait = hasattr(os, "RWF_NOWAIT")
        self.size = os.fstat(descriptor).st_size

    def __del__(self) -> None:
        self.close()

    def append(self, data: Buffer) -> int:
        position = self.size
        size = len(data)
        try:
            written = os.pwrite(self._descriptor, data, position)
            if written != size:
                self._write_rest(data, position, written)
        except OSError:
            self._truncate(position)
            raise
        self.size = position + size
        return position

    def append_all(self, buffers: Sequence[Buffer]) -> int:
        position = self.size
        size = sum(map(len, buffers))
        try:
            written = os.pwritev(self._descriptor, buffers[:_BUFFERS_PER_WRITE], position)
            if written != size:
                self._write_rest(b"".join(buffers), position, written)
        except OSError:
            self._truncate(position)
            raise
        self.size = position + size
        return position

    def write_at(self, data: Buffer, position: int) -> None:
        self._write_rest(data, position, 0)
        self.size = max(self.size, position + len(data))

    def read(self, position: int, size: int) -> bytes:
        size = min(size, self.size - position)
        if size <= 0:
            return b""
        descriptor = self._use()
        try:
            data = os.pread(descriptor, size, position)
            while len(data) < size:
                more = os.pread(descriptor, size - len(data), position + len(data))
                if not more:
                    break
                data += more
            return data
        finally:
            self._release()

    def read_cached(self, position: int, size: int) -> bytes | None:
        if not self._nowait:
            return self.read(position, size)
        size = min(size, self.size - position)
        if size <= 0:
            return b""
        buffer = _scratch(size)
        descriptor = self._use()
        try:
            count = os.preadv(descriptor, (buffer,), position, os.RWF_NOWAIT)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            self._nowait = False
            return self.read(position, size)
        finally:
            self._release()
        return bytes(buffer) if count == size else None

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)
        self.size = size

    def sync(self) -> None:
        descriptor = self._use()
        try:
            os.fdatasync(descriptor)
        finally:
            self._release()

    def fileno(self) -> int | None:
        return self._descriptor

    def close(self) -> None:
        with self._guard:
            self._closing = True
            self._close_if_unused()

    def _use(self) -> int:
        with self._guard:
            if self._closing:
                raise OSError(errno.EBADF, "the file is closed", self.path)
            self._users_count += 1
            return self._descriptor

    def _release(self) -> None:
        with self._guard:
            self._users_count -= 1
            if self._closing:
                self._close_if_unused()

    def _close_if_unused(self) -> None:
        if not self._users_count and self._descriptor != _CLOSED:
            descriptor, self._descriptor = self._descriptor, _CLOSED
            os.close(descriptor)

    def _write_rest(self, data: Buffer, position: int, written: int) -> None:
        rest = memoryview(data)
        while written < len(rest):
            written += os.pwrite(self._descriptor, rest[written:], position + written)

    def _truncate(self, size: int) -> None:
        # If this fails too, the next append still overwrites the bytes past `size`.
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, size)


class _Scratch(threading.local):
    """Per-thread memory that is reused: allocating costs more than the read itself."""

    view = memoryview(bytearray())


_thread = _Scratch()


def _scratch(size: int) -> memoryview:
    if size > _SCRATCH_BYTES_MAX:
        return memoryview(bytearray(size))
    if size > len(_thread.view):
        _thread.view = memoryview(bytearray(size))
    return _thread.view[:size]


class LocalFilesystem:
    def open(self, path: str, *, create: bool = False) -> LocalFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return LocalFile(path, os.open(path, flags, 0o644))

    def read_bytes(self, path: str) -> bytes:
        with open(path, "rb", buffering=0) as file:
            return file.read()

    def write_atomically(self, path: str, data: Buffer) -> None:
        write_atomically(self, path, data)

    def exists(self, path: str) -> bool:
        try:
            os.stat(path)
        except FileNotFoundError:
            return False
        return True

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def list(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def make_directory(self, path: str, *, sync: bool = True) -> None:
        try:
            os.mkdir(path)  # noqa: PTH102
        except FileExistsError:
            if not Path(path).is_dir():
                raise NotADirectoryError(errno.ENOTDIR, "Not a directory", path) from None
            return
        except FileNotFoundError:
            if Path(parent_of(path)).is_dir():
                raise  # For example /proc, where directories cannot be created.
            self.make_directory(parent_of(path), sync=sync)
            self.make_directory(path, sync=sync)
            return
        if sync:
            self.sync_directory(parent_of(path))

    def rename(self, source: str, target: str) -> None:
        Path(source).replace(target)

    def remove(self, path: str) -> None:
        Path(path).unlink()

    def remove_tree(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path)

    def sync_directory(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def space(self, path: str) -> tuple[int, int]:
        status = os.statvfs(path)
        return status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize

    def boot_id(self) -> str:
        try:
            return Path(_BOOT_ID).read_text().strip()
        except OSError:
            return ""

    def lock(self, path: str) -> "LocalLock":
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise
        return LocalLock(path, descriptor)


class LocalLock:
    __slots__ = ("_descriptor", "_path", "_status")

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._status = os.fstat(descriptor)

    def is_in_place(self) -> bool:
        """While the descriptor is open, no other file gets its inode number."""
        try:
            return os.path.samestat(os.stat(self._path), self._status)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def release(self) -> None:
        """The system also releases it when the process ends, however it ends."""
        if self._descriptor != _CLOSED:
            os.close(self._descriptor)
            self._descriptor = _CLOSED
