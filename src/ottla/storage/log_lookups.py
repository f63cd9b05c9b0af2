"""Finds things in a log while its segments may be moved or removed.

A lookup takes no lock and may wait for the disk. If the segments have changed when it is done, or
it failed because they did, it begins again.
"""

import threading
from collections.abc import Callable
from typing import TypeVar

from ottla.storage.errors import CorruptLog
from ottla.storage.local_log import LocalLog
from ottla.storage.reading import (
    FoundTimestamp,
    collect_aborted,
    find_max_timestamp,
    find_timestamp,
)
from ottla.storage.transaction_index import AbortedTransaction

T = TypeVar("T")


class LogLookups:
    __slots__ = ("_local", "_lock", "_on_disk_error")

    def __init__(
        self,
        local: LocalLog,
        lock: threading.Lock,
        on_disk_error: Callable[[OSError], Exception],
    ) -> None:
        """`lock` is the one that is held around changes; `on_disk_error` says what to raise."""
        self._local = local
        self._lock = lock
        self._on_disk_error = on_disk_error

    def timestamp(self, timestamp_ms: int, log_start_offset: int) -> FoundTimestamp | None:
        """The first record whose timestamp is not smaller."""
        local = self._local
        return self._look(
            lambda: find_timestamp(local.segments, timestamp_ms, log_start_offset, local.end)
        )

    def max_timestamp(self, log_start_offset: int) -> FoundTimestamp | None:
        """The first record that has the largest timestamp."""
        return self._look(lambda: find_max_timestamp(self._local.segments, log_start_offset))

    def aborted(self, first_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Transactions with records from `first_offset` up to, not including, `end_offset`."""
        return self._look(lambda: collect_aborted(self._local.segments, first_offset, end_offset))

    def raise_unless_moved(self, error: CorruptLog | OSError, generation: int) -> None:
        """What a reader met that began at this generation is an error only if it still is."""
        if generation == self._settled_generation():
            raise self._on_disk_error(error) if isinstance(error, OSError) else error

    def _look(self, look: Callable[[], T]) -> T:
        generation = self._settled_generation()
        try:
            found = look()
        except (CorruptLog, OSError) as error:
            self.raise_unless_moved(error, generation)
            return self._look(look)
        return found if generation == self._settled_generation() else self._look(look)

    def _settled_generation(self) -> int:
        with self._lock:  # Whoever is changing the segments is done then.
            return self._local.generation
