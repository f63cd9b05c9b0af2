"""The seam between the logs and the disk.

Every file that the broker reads or writes goes through a `Filesystem`. There are two: the operating
system's, and an in-memory one that can tear writes, lose what was not synced, fail a sync and flip
bits.

Errors are `OSError`; the storage package turns them into `StorageError` where it knows which log
directory is affected.
"""

from collections.abc import Sequence
from typing import Protocol

Buffer = bytes | bytearray | memoryview


class File(Protocol):
    """An open file. Positions are bytes from its beginning.

    Only one thread at a time appends, writes and truncates; reads, syncs and `close` may come from
    any thread at the same time.
    """

    path: str
    size: int  # Invariant: where the next append goes; updated by append and truncate.

    def append(self, data: Buffer) -> int:
        """Write all of `data` at the end and return the position where it starts.

        If not everything can be written (disk full), the file is truncated to its former size.
        """

    def append_all(self, buffers: Sequence[Buffer]) -> int:
        """Append several buffers with one write."""

    def write_at(self, data: Buffer, position: int) -> None:
        """Overwrite in place; the file grows if `data` ends past its end."""

    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file. May wait for the disk."""

    def read_cached(self, position: int, size: int) -> bytes | None:
        """Like `read`, but None if it would have to wait for the disk."""

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None:
        """Everything appended before is on disk when this returns (fdatasync).

        If it fails, what was not yet synced is lost, though reads may still find it: a later
        successful sync does not cover it unless it is written again.
        """

    def fileno(self) -> int | None:
        """For sendfile; None if there is no operating system file behind it."""

    def close(self) -> None:
        """A file that is no longer referenced is closed too."""


class Filesystem(Protocol):
    """Paths are absolute and `/`-separated."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing; FileNotFoundError if it does not exist, unless `create`."""

    def read_bytes(self, path: str) -> bytes: ...

    def write_atomically(self, path: str, data: Buffer) -> None:
        """Write a temporary file, sync it, rename it over `path`, sync the directory."""

    def exists(self, path: str) -> bool: ...

    def size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def list(self, path: str) -> list[str]:
        """Names in a directory, sorted."""

    def make_directory(self, path: str, *, sync: bool = True) -> None:
        """Creates parents too; fine if it exists. `sync` also syncs the entry in its parent."""

    def rename(self, source: str, target: str) -> None:
        """Atomic, within one directory; replaces a file at `target`."""

    def remove(self, path: str) -> None: ...

    def remove_tree(self, path: str) -> None:
        """Remove a directory and everything in it; fine if it is gone."""

    def sync_directory(self, path: str) -> None:
        """Names created, renamed and removed in it before are on disk when this returns."""

    def space(self, path: str) -> tuple[int, int]:
        """The size of the volume and its free bytes; -1 if unknown."""

    def boot_id(self) -> str:
        """Changes with each boot of the machine; empty if unknown.

        As long as it stays the same, everything written is there, synced or not.
        """

    def lock(self, path: str) -> "Lock":
        """Take an exclusive lock on a file; BlockingIOError if another process holds it."""


class Lock(Protocol):
    def is_in_place(self) -> bool:
        """Whether the locked file is still the one at its path."""

    def release(self) -> None: ...


TEMPORARY_SUFFIX = ".tmp"


def write_atomically(filesystem: Filesystem, path: str, data: Buffer) -> None:
    """`Filesystem.write_atomically`, built from the other filesystem operations."""
    temporary = path + TEMPORARY_SUFFIX
    try:
        file = filesystem.open(temporary, create=True)
        try:
            file.truncate(0)
            file.append(data)
            file.sync()
        finally:
            file.close()
        filesystem.rename(temporary, path)
    except OSError:
        if filesystem.exists(temporary):
            filesystem.remove(temporary)
        raise
    filesystem.sync_directory(parent_of(path))


def write_unsynced(filesystem: Filesystem, path: str, data: Buffer) -> None:
    """Write a whole file; a crash may lose or tear it."""
    file = filesystem.open(path, create=True)
    try:
        file.truncate(0)
        file.append(data)
    finally:
        file.close()


def parent_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"
