"""Finds things in a log while its segments may be moved or removed.

A lookup takes no lock and may wait for the disk. If the segments changed meanwhile, it starts over,
whether it succeeded or failed.
"""

import threading
from collections.abc import Callable
from typing import TypeVar

from ottla.protocol.lazy_dataclass import dataclass
from ottla.protocol.topics import TopicPartition
from ottla.storage.errors import CorruptLog, KnownDamage
from ottla.storage.index_audit import validate_transactions
from ottla.storage.index_file import CorruptIndex
from ottla.storage.local_log import LocalLog
from ottla.storage.reading import (
    FoundTimestamp,
    collect_aborted,
    find_max_timestamp,
    find_timestamp,
    index_of,
)
from ottla.storage.transaction_index import AbortedTransaction

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class LogLookups:
    _local: LocalLog
    _lock: threading.Lock  # Held around changes.
    _topic_partition: TopicPartition
    _on_disk_error: Callable[[OSError], Exception]  # Returns the exception to raise.

    def timestamp(self, timestamp_ms: int, log_start_offset: int) -> FoundTimestamp | None:
        """The first record whose timestamp is at least this."""
        local = self._local
        return self._look(
            lambda: find_timestamp(local.segments, timestamp_ms, log_start_offset, local.end)
        )

    def max_timestamp(self, log_start_offset: int) -> FoundTimestamp | None:
        """The first record with the largest timestamp."""
        return self._look(lambda: find_max_timestamp(self._local.segments, log_start_offset))

    def aborted(self, first_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Transactions with records from `first_offset` up to, not including, `end_offset`."""
        return self._look(lambda: self._collect(first_offset, end_offset))

    def _collect(self, first_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """A transaction index that this process did not write is first compared with the log."""
        segments = self._local.segments
        for segment in segments[index_of(segments, first_offset) :]:
            if not segment.are_transactions_verified:
                try:
                    validate_transactions(segments, segment)
                except CorruptIndex as error:
                    raise CorruptLog(segment.path, 0, first_offset, str(error)) from error
                segment.are_transactions_verified = True
            if segment.base_offset >= end_offset:
                break
        return collect_aborted(segments, first_offset, end_offset)

    def raise_unless_moved(self, error: CorruptLog | OSError, generation: int) -> None:
        """An error met by a reader that began at this generation counts only if it is unchanged."""
        if generation != self._settled_generation():
            return
        if isinstance(error, OSError):
            raise self._on_disk_error(error)
        if not isinstance(error, KnownDamage):
            self._suspect(error)
        raise error

    def _suspect(self, error: CorruptLog) -> None:
        """Have the segment verified before anything more is served from it."""
        for segment in self._local.segments:
            if segment.path == error.path:
                segment.unverified = ((0, segment.size),)
                self._local.log_directory.suspect(
                    self._topic_partition, segment.base_offset, str(error)
                )

    def _look(self, look: Callable[[], T]) -> T:
        generation = self._settled_generation()
        try:
            found = look()
        except (CorruptLog, OSError) as error:
            self.raise_unless_moved(error, generation)
            return self._look(look)
        return found if generation == self._settled_generation() else self._look(look)

    def _settled_generation(self) -> int:
        with self._lock:  # A change in progress is finished then.
            return self._local.generation
