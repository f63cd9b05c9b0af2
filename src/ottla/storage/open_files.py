"""Bounds how many segment files are open at once.

A file is never closed under a reader: the bound only drops the segment's own reference, and the
descriptor is closed when the last `LogSlice`, read or sync releases the file.

A segment being written has one file object at a time, because it knows where the next append goes.
So it is dropped only while its log's lock is free, and the next use reopens it.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from ottla.storage.filesystem import File, Filesystem

_TRIES_MAX = 64  # Files examined to find an unused one.


class FileHolder(Protocol):
    open_file: File | None
    recently_used: bool  # Set by each use; protects the file for one round of dropping.
    unsynced: bool  # Dropped last: a failed write shows only on its own descriptor.
    writer_lock: "threading.Lock | None"  # Held by the writer; None if there is no writer.

    def open_own_file(self, filesystem: Filesystem) -> File: ...


class OpenFiles:
    """Second chance: drops the first file not used since the last round.

    The bound is exceeded only while more files than that are being written at once.
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
        """The holder's file, opened if necessary; thread-safe."""
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
        """Drop the holder's file; it is not reopened before `rename` is done."""
        with self._guard:
            if holder.open_file is not None:
                holder.open_file = None
                self._holders.remove(holder)
            if rename is not None:
                rename()

    def set_writer(self, holder: FileHolder, lock: "threading.Lock | None") -> None:
        """From now on writes to the holder take this lock; None if there are no more writes."""
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
        """False if the file is being written; does not wait for its lock."""
        holder = self._holders[0]
        lock = holder.writer_lock
        if lock is not None and not lock.acquire(blocking=False):
            return False
        holder.open_file = None
        self._holders.popleft()
        if lock is not None:
            lock.release()
        return True
