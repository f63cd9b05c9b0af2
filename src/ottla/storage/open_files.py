"""Bounds how many files of segments are open at once.

A file is never closed under a reader: the bound only drops the segment's own reference, and the
descriptor goes when the last `LogSlice`, read or sync that holds the file is done with it.

A segment that is written to has one file object at a time, for that knows where the next append
lands. So it is dropped only while its log's lock is free, and it is opened anew by the next use.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from ottla.storage.filesystem import File, Filesystem

_TRIES_MAX = 64  # Files that are looked at for one that is not in use.


class FileHolder(Protocol):
    open_file: File | None
    recently_used: bool  # Set by each use; saves the file from one round of dropping.
    unsynced: bool  # Such files are dropped last, for a failed write shows on its own descriptor.
    writer_lock: "threading.Lock | None"  # Held by whoever writes; None when nobody does.

    def open_own_file(self, filesystem: Filesystem) -> File: ...


class OpenFiles:
    """Second chance: the first file that was not used since the last round is dropped.

    The bound is passed only while more files than that are being written at the same moment.
    """

    __slots__ = ("_count_max", "_filesystem", "_guard", "_holders")

    def __init__(self, filesystem: Filesystem, count_max: int) -> None:
        assert count_max > 0
        self._filesystem = filesystem
        self._count_max = count_max
        self._guard = threading.Lock()
        self._holders: deque[FileHolder] = deque()

    def __len__(self) -> int:
        return len(self._holders)

    def open(self, holder: FileHolder) -> File:
        """The holder's file, opened unless it is; safe from any thread."""
        with self._guard:
            file = holder.open_file
            if file is None:
                file = holder.open_own_file(self._filesystem)
                if len(self._holders) >= self._count_max:
                    self._drop_one()
                holder.open_file = file
                self._holders.append(holder)
        holder.recently_used = True
        return file

    def release(self, holder: FileHolder, rename: Callable[[], object] | None = None) -> None:
        """The holder is done with its file; it is not opened again before `rename` is done."""
        with self._guard:
            if holder.open_file is not None:
                holder.open_file = None
                self._holders.remove(holder)
            if rename is not None:
                rename()

    def set_writer(self, holder: FileHolder, lock: "threading.Lock | None") -> None:
        """From now on the holder is written to under this lock, or by nobody."""
        with self._guard:
            holder.writer_lock = lock

    def _drop_one(self) -> None:
        holders = self._holders
        for _ in range(min(2 * len(holders), _TRIES_MAX)):
            idle = not (holders[0].recently_used or holders[0].unsynced)
            if idle and self._drop_first():
                return
            holders[0].recently_used = False
            holders.rotate(-1)
        for _ in range(len(holders)):
            if self._drop_first():
                return
            holders.rotate(-1)

    def _drop_first(self) -> bool:
        """False if it is being written; its lock is not waited for."""
        holder = self._holders[0]
        lock = holder.writer_lock
        if lock is not None and not lock.acquire(blocking=False):
            return False
        holder.open_file = None
        self._holders.popleft()
        if lock is not None:
            lock.release()
        return True
