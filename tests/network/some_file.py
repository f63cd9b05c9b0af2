"""Files to send pieces of."""

import os
import threading
from pathlib import Path
from typing import NamedTuple


class SomeFile:
    """A real file that can pretend not to be in the page cache."""

    def __init__(self, path: Path, way: str) -> None:
        self._descriptor = os.open(path, os.O_RDONLY)
        self._way = way
        self.read_now = 0  # Bytes read from it, by any thread.
        self.gate = threading.Event()  # Reads in a thread wait for it.
        self.gate.set()
        self.failing = False
        self.evicted = False  # It is no longer in the page cache.

    def fileno(self) -> int | None:
        return self._descriptor if self._way == "sendfile" else None

    def read(self, position: int, size: int) -> bytes:
        self.gate.wait()
        if self.failing:
            raise OSError(5, "the disk is broken")
        data = os.pread(self._descriptor, size, position)
        self.read_now += len(data)
        return data

    def read_cached(self, position: int, size: int) -> bytes | None:
        return None if self._way == "thread" or self.evicted else self.read(position, size)

    def close(self) -> None:
        os.close(self._descriptor)


class Piece(NamedTuple):
    file: SomeFile
    position: int
    size: int
