"""Bounds how many files of segments are open at once.

A file is never closed under a reader: the bound only drops the segment's own reference, and the
descriptor goes when the last `LogSlice`, read or sync that holds the file is done with it.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from ottla.storage.filesystem import File, Filesystem


class FileHolder(Protocol):
    open_file: File | None
    recently_used: bool  # Set by each use; saves the file from one round of dropping.
    unsynced: bool  # Such files are dropped last, for a failed write shows on its own descriptor.

    def open_own_file(self, filesystem: Filesystem) -> File: ...


class OpenFiles:
    """Second chance: the first file that was not used since the last round is dropped."""

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

    def _drop_one(self) -> None:
        holders = self._holders
        for _ in range(2 * len(holders)):
            holder = holders.popleft()
            if not (holder.recently_used or holder.unsynced):
                break
            holder.recently_used = False
            holders.append(holder)
        else:
            holder = holders.popleft()
        holder.open_file = None
