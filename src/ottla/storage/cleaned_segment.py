"""Writes the compacted form of adjacent segments: `<base offset>.log.cleaned` and its indexes."""

from typing import NamedTuple

from ottla.records.batch import NO_TIMESTAMP, BatchHeader
from ottla.storage.config import LogConfig
from ottla.storage.filesystem import Buffer, File, Filesystem
from ottla.storage.offset_index import OffsetIndex
from ottla.storage.segment import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)
from ottla.storage.segment_swap import CLEANED_SUFFIX
from ottla.storage.time_index import TimeIndex
from ottla.storage.transaction_index import AbortedTransaction, TransactionIndex

_WRITE_BYTES = 256 * 1024


class CleanedSegment(NamedTuple):
    base_offset: int
    size: int
    next_offset: int


class CleanedSegmentWriter:
    """Nothing is synced before `finish`, and readers see nothing until the files are swapped in."""

    def __init__(
        self,
        filesystem: Filesystem,
        directory: str,
        base_offset: int,
        config: LogConfig,
    ) -> None:
        self._filesystem = filesystem
        self._base_offset = base_offset
        self._interval_bytes = config.index_interval_bytes
        self._stem = f"{directory}/{base_offset:020d}"
        self._file = self._create(LOG_SUFFIX)
        self._offsets = OffsetIndex(self._path(OFFSET_INDEX_SUFFIX), base_offset, filesystem)
        self._times = TimeIndex(self._path(TIME_INDEX_SUFFIX), base_offset, filesystem)
        self._transactions = TransactionIndex(
            self._path(TRANSACTION_INDEX_SUFFIX), base_offset, filesystem
        )
        for index in (self._offsets, self._times, self._transactions):
            index.reset()
        self._pending: list[Buffer] = []
        self._pending_bytes = 0
        self._size = 0
        self._unindexed_bytes = 0
        self._next_offset = base_offset
        self._largest = (NO_TIMESTAMP, base_offset)

    def append(self, batch: Buffer, header: BatchHeader) -> None:
        """`batch` must not change until it is written: it is kept, not copied."""
        if header.max_timestamp > self._largest[0]:
            self._largest = (header.max_timestamp, header.last_offset)
        if self._unindexed_bytes > self._interval_bytes:
            self._offsets.append(header.last_offset, self._size)
            self._times.maybe_append(*self._largest)
            self._unindexed_bytes = 0
        self._pending.append(batch)
        self._pending_bytes += len(batch)
        self._unindexed_bytes += len(batch)
        self._size += len(batch)
        self._next_offset = header.next_offset
        if self._pending_bytes >= _WRITE_BYTES:
            self._write()

    def add_aborted(self, transaction: AbortedTransaction) -> None:
        self._transactions.append(transaction)

    def finish(self, *, with_transactions: bool) -> CleanedSegment:
        """Sync all files. An old transaction index needs a replacement, even an empty one."""
        self._write()
        self._times.maybe_append(*self._largest)
        self._file.sync()
        self._file.close()
        if with_transactions:
            self._create(TRANSACTION_INDEX_SUFFIX).close()
        for index in (self._offsets, self._times, self._transactions):
            index.flush()
        return CleanedSegment(self._base_offset, self._size, self._next_offset)

    def discard(self) -> None:
        self._file.close()
        for suffix in SEGMENT_SUFFIXES:
            if self._filesystem.exists(self._path(suffix)):
                self._filesystem.remove(self._path(suffix))

    def _write(self) -> None:
        if self._pending:
            self._file.append_all(self._pending)
            self._pending = []
            self._pending_bytes = 0

    def _path(self, suffix: str) -> str:
        return self._stem + suffix + CLEANED_SUFFIX

    def _create(self, suffix: str) -> File:
        file = self._filesystem.open(self._path(suffix), create=True)
        file.truncate(0)
        return file
