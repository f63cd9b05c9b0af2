"""A piece of a log: the batches from `base_offset` on, in one file, with its indexes.

`<base offset>.log` contains the batches. `.index` maps offsets to positions, `.timeindex`
timestamps to offsets, `.txnindex` lists aborted transactions. An index can be rebuilt from the log
file. Files are opened on demand, and created only when there is something to write.

One thread at a time changes a segment, under its log's lock. Reads may come from any thread.
"""

import threading
from collections.abc import Iterator

from ottla.records.batch import HEADER_SIZE, NO_TIMESTAMP, BatchHeader, read_header
from ottla.storage.batch_walk import Batch, walk
from ottla.storage.damage import Damage
from ottla.storage.errors import CorruptLog
from ottla.storage.filesystem import Buffer, File, Filesystem
from ottla.storage.log_directory import LogDirectory
from ottla.storage.offset_index import OffsetIndex, OffsetPosition
from ottla.storage.sparse_index import INDEX_SIZE_MAX, RELATIVE_OFFSET_MAX
from ottla.storage.time_index import TimeIndex, TimestampOffset
from ottla.storage.transaction_index import TransactionIndex

LOG_SUFFIX = ".log"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
DELETED_SUFFIX = ".deleted"
SEGMENT_SUFFIXES = (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)

ROLL_NOW = -1
_TIMESTAMP_MAX = 2**63 - 1
_POSITION_MAX = 2**63 - 1


class Segment:
    __slots__ = (
        "_largest_offset",
        "_largest_timestamp",
        "_offset_index",
        "_time_index",
        "_transaction_index",
        "_unindexed_bytes",
        "are_transactions_verified",
        "base_offset",
        "damage",
        "directory",
        "index_bytes_max",
        "log_directory",
        "on_disk",
        "open_file",
        "recently_used",
        "removed",
        "roll_offset",
        "roll_size",
        "roll_timestamp",
        "shown_size",
        "size",
        "unsynced",
        "unverified",
        "writer_lock",
    )

    def __init__(
        self,
        log_directory: LogDirectory,
        directory: str,
        base_offset: int,
        *,
        size: int = 0,
        on_disk: bool = False,
    ) -> None:
        self.log_directory = log_directory
        self.directory = directory
        self.base_offset = base_offset
        self.size = size  # Invariant: where the last complete batch ends in the file.
        self.on_disk = on_disk  # Whether there is a log file.
        self.open_file: File | None = None
        self.removed = False  # Its files are out of the log; a thread may still hold it.
        self.recently_used = False
        self.unsynced = False
        self.shown_size = 0  # Its size when `show_indexes` last wrote something.
        self.damage: tuple[Damage, ...] = ()  # By position; not served.
        # The ranges of the file whose batches were not checked since the process started.
        self.unverified: tuple[tuple[int, int], ...] = ((0, size),) if size else ()
        self.are_transactions_verified = not size
        self.writer_lock: threading.Lock | None = None  # Set by `OpenFiles.set_writer`.
        # An append that would exceed one of these starts a new segment; set by the log.
        self.roll_size = ROLL_NOW
        self.index_bytes_max = INDEX_SIZE_MAX
        self.roll_timestamp = _TIMESTAMP_MAX
        self.roll_offset = base_offset + RELATIVE_OFFSET_MAX
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._transaction_index: TransactionIndex | None = None
        self._unindexed_bytes = 0
        # None until the time index of a segment found on disk is read.
        self._largest_timestamp: int | None = None if size else NO_TIMESTAMP
        self._largest_offset = base_offset

    def __repr__(self) -> str:
        return f"Segment({self.stem}, {self.size} bytes)"

    @property
    def stem(self) -> str:
        return f"{self.directory}/{self.base_offset:020d}"

    @property
    def path(self) -> str:
        return self._path(LOG_SUFFIX)

    @property
    def offset_index(self) -> OffsetIndex:
        if self._offset_index is None:
            path = self._path(OFFSET_INDEX_SUFFIX)
            self._offset_index = OffsetIndex(path, self.base_offset, self.log_directory.filesystem)
        return self._offset_index

    @property
    def time_index(self) -> TimeIndex:
        if self._time_index is None:
            path = self._path(TIME_INDEX_SUFFIX)
            self._time_index = TimeIndex(path, self.base_offset, self.log_directory.filesystem)
        return self._time_index

    @property
    def transaction_index(self) -> TransactionIndex:
        if self._transaction_index is None:
            path = self._path(TRANSACTION_INDEX_SUFFIX)
            self._transaction_index = TransactionIndex(
                path, self.base_offset, self.log_directory.filesystem
            )
        return self._transaction_index

    @property
    def largest(self) -> TimestampOffset:
        """The largest timestamp, and the last offset of the first batch that has it."""
        if self._largest_timestamp is None:
            largest = self.time_index.last_entry
            if not self._is_largest(largest):
                largest = self._find_largest()
            self._largest_timestamp, self._largest_offset = largest
        return TimestampOffset(self._largest_timestamp, self._largest_offset)

    @property
    def retention_timestamp(self) -> int:
        """The time from which retention counts the segment's age."""
        timestamp = self.largest.timestamp
        if timestamp != NO_TIMESTAMP or not self.on_disk:
            return timestamp
        return self.log_directory.filesystem.modified_ms(self.path)

    def _is_largest(self, entry: TimestampOffset) -> bool:
        """Retention relies on the last entry, so check it against its batch."""
        if entry.timestamp == NO_TIMESTAMP:
            return False
        batch = self.find_offset(entry.offset)
        return batch is not None and batch[3:] == (entry.offset, entry.timestamp)

    def first_from(self, timestamp: int, offset: int) -> Batch | None:
        """A batch from `offset` on such that no earlier one has a timestamp this large."""
        entry = self.time_index.lookup(timestamp)
        if entry.offset > max(offset, self.base_offset):
            found = self.find_offset(entry.offset)
            if found is None or found[3:] != (entry.offset, entry.timestamp):
                raise CorruptLog(self.path, 0, entry.offset, "the time index points elsewhere")
            return found
        return self.find_offset(max(offset, self.base_offset))

    def _find_largest(self) -> TimestampOffset:
        """For a segment whose time index is empty or wrong, or that has no timestamps."""
        largest = TimestampOffset(NO_TIMESTAMP, self.base_offset)
        for batch in self.batches(0):
            if batch.max_timestamp > largest.timestamp:
                largest = TimestampOffset(batch.max_timestamp, batch.last_offset)
        return largest

    def file(self) -> File:
        self.recently_used = True
        return self.open_file or self.log_directory.open_files.open(self)

    def open_own_file(self, filesystem: Filesystem) -> File:
        """For `OpenFiles`; others use `file`."""
        file = filesystem.open(self.path, create=not self.on_disk)
        self.on_disk = True
        if file.size > self.size:
            file.truncate(self.size)  # Bytes of a failed append that could not be undone.
        if file.size < self.size:
            raise CorruptLog(self.path, file.size, -1, f"{self.size} bytes were there before")
        return file

    def append(
        self, data: Buffer, last_offset: int, max_timestamp: int, index_interval_bytes: int
    ) -> int:
        """Write one batch and return its position; OSError leaves the segment unchanged."""
        file = self.open_file or self.log_directory.open_files.open(self)
        self.recently_used = True
        self.unsynced = True
        position = file.append(data)
        size = len(data)
        self.size = position + size
        self.add_to_indexes(position, size, last_offset, max_timestamp, index_interval_bytes)
        return position

    def append_all(self, data: Buffer) -> int:
        """Write several batches; the caller adds each of them to the indexes."""
        self.unsynced = True
        position = self.file().append(data)
        self.size = position + len(data)
        return position

    def rewrite(self, data: Buffer, position: int) -> None:
        """Rewrite what is already there, so that the next sync writes it to disk."""
        self.unsynced = True
        self.file().write_at(data, position)

    def add_to_indexes(
        self,
        position: int,
        size: int,
        last_offset: int,
        max_timestamp: int,
        index_interval_bytes: int,
    ) -> None:
        """Index a batch that was written or, in recovery, found."""
        assert self._largest_timestamp is not None
        if max_timestamp > self._largest_timestamp:
            self._largest_timestamp = max_timestamp
            self._largest_offset = last_offset
        if self._unindexed_bytes > index_interval_bytes:
            self.offset_index.append(last_offset, position)
            self.time_index.maybe_append(self._largest_timestamp, self._largest_offset)
            self._unindexed_bytes = 0
            size_max = self.index_bytes_max
            if self.offset_index.is_full(size_max) or self.time_index.is_full(size_max):
                self.roll_size = ROLL_NOW
        self._unindexed_bytes += size

    def batches(self, start: int, *, cached_only: bool = False) -> Iterator[Batch]:
        """The batches from boundary `start`; a damaged part counts as one without a timestamp."""
        floor = self.base_offset
        for damage in self.damage:
            if damage.end <= start:
                continue
            yield from walk(self.file(), start, damage.position, floor, cached_only=cached_only)
            yield Batch(
                damage.position,
                damage.end - damage.position,
                damage.first_offset,
                damage.next_offset - 1,
                NO_TIMESTAMP,
            )
            start, floor = damage.end, damage.next_offset
        yield from walk(self.file(), start, self.size, floor, cached_only=cached_only)

    def first_batch(self) -> Batch:
        """Requires a segment that is not empty."""
        return next(self.batches(0))

    def header_at(self, position: int) -> BatchHeader:
        return read_header(self.file().read(position, HEADER_SIZE))

    def damage_from(self, position: int) -> Damage | None:
        """The first damage that ends after `position`."""
        return next((damage for damage in self.damage if damage.end > position), None)

    def is_verified(self, position: int, end: int) -> bool:
        return not any(start < end and position < stop for start, stop in self.unverified)

    def on_verified(self, position: int, end: int) -> None:
        """The batches from `position` to `end` were found intact."""
        left: list[tuple[int, int]] = []
        for start, stop in self.unverified:
            parts = ((start, min(stop, position)), (max(start, end), stop))
            left += [part for part in parts if part[0] < part[1]]
        self.unverified = tuple(left)

    def find_offset(
        self, offset: int, *, start: int = 0, cached_only: bool = False
    ) -> Batch | None:
        """The first batch from `start` on whose last offset is at least `offset`."""
        entry = self.offset_index.lookup(offset)
        start = max(start, self._within(entry))
        for batch in self.batches(start, cached_only=cached_only):
            if batch.position == entry.position:
                self._check_entry(entry, batch)
            if batch.last_offset >= offset:
                return batch
        return None

    def boundary_by(self, start: int, stop: int, *, cached_only: bool = False) -> tuple[int, int]:
        """The last batch end not past `stop`, but at least the end of the batch at `start`.

        Returns the position and the offset that follows it.
        """
        entry = self.offset_index.lookup_position(stop)
        position = max(start, self._within(entry))
        last = None
        for batch in self.batches(position, cached_only=cached_only):
            if batch.position == entry.position:
                self._check_entry(entry, batch)
            if batch.end > stop and batch.position > start:
                next_offset = batch.base_offset if last is None else last.last_offset + 1
                return batch.position, next_offset
            last = batch
        assert last is not None
        # Not the segment's size: an append may have overtaken a reader in another thread.
        return last.end, last.last_offset + 1

    def _within(self, entry: OffsetPosition) -> int:
        offset, position = entry
        if position > self.size:
            raise CorruptLog(self.path, position, offset, "the index points past the end")
        return position

    def _check_entry(self, entry: OffsetPosition, batch: Batch) -> None:
        """Check that an index entry has the last offset of the batch at its position."""
        if entry.position and not self.damage and entry.offset != batch.last_offset:
            raise CorruptLog(
                self.path, batch.position, entry.offset, f"the batch ends at {batch.last_offset}"
            )

    def load_tail(self) -> int:
        """Prepare a cleanly closed segment for appends; returns the offset that follows it.

        Reads the indexes and the batches after the last entry, not the whole file.
        """
        largest = self.time_index.last_entry
        self._largest_timestamp, self._largest_offset = largest
        next_offset = self.base_offset
        indexed_offset, start = self.offset_index.lookup(_TIMESTAMP_MAX)
        if start:
            indexed = next(self.batches(start), None)
            if indexed is None or indexed.last_offset != indexed_offset:
                raise CorruptLog(self.path, start, indexed_offset, "the index points elsewhere")
        self._unindexed_bytes = self.size - start
        if largest.timestamp == NO_TIMESTAMP:
            start = 0
        for batch in self.batches(start):
            next_offset = batch.last_offset + 1
            if batch.max_timestamp > self._largest_timestamp:
                self._largest_timestamp = batch.max_timestamp
                self._largest_offset = batch.last_offset
        return next_offset

    def begin_indexing(self) -> None:
        """Clear the indexes; every batch is added again."""
        for index in (self.offset_index, self.time_index, self.transaction_index):
            index.reset()
        self._largest_timestamp = NO_TIMESTAMP
        self._largest_offset = self.base_offset
        self._unindexed_bytes = 0

    def with_new_indexes(self) -> "Segment":
        """The same segment with empty indexes, to be filled and passed to `take_indexes`."""
        fresh = Segment(self.log_directory, self.directory, self.base_offset, on_disk=True)
        fresh.begin_indexing()
        return fresh

    def take_indexes(self, fresh: "Segment") -> None:
        self._largest_timestamp, self._largest_offset = fresh.largest
        self._offset_index, self._time_index = fresh.offset_index, fresh.time_index
        self._transaction_index = fresh.transaction_index

    def seal(self) -> None:
        """No append follows: add the largest timestamp to the time index."""
        timestamp, offset = self.largest
        if timestamp != NO_TIMESTAMP:
            self.time_index.maybe_append(timestamp, offset)

    def truncate_to(self, position: int, offset: int) -> None:
        """Truncate before the batch at `position`, so that the segment ends at `offset`."""
        self.unsynced = True
        self.size = position
        self.damage = tuple(damage for damage in self.damage if damage.position < position)
        self.on_verified(position, _POSITION_MAX)
        if self.on_disk:
            self.file().truncate(position)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.transaction_index.truncate_to(offset)
        if not position:
            self.begin_indexing()
            return
        try:
            self.load_tail()
        except CorruptLog:  # The remaining index points elsewhere.
            self.offset_index.reset()
            self.load_tail()

    def sync(self) -> None:
        """The batches written before this call are on disk when it returns."""
        self.unsynced = False
        try:
            self.file().sync()
        except OSError:
            self.unsynced = True
            raise

    @property
    def wrote_transaction_index(self) -> bool:
        """Whether the file name may not be synced yet."""
        return self._transaction_index is not None and self._transaction_index.file.was_written

    def flush_indexes(self) -> None:
        for index in (self._offset_index, self._time_index, self._transaction_index):
            if index is not None:
                index.flush()

    def show_indexes(self) -> None:
        """Write the indexes of the active segment, for other programs to read; syncs nothing.

        Skips the list of aborted transactions: without the file, there are none.
        """
        if self.shown_size == self.size:
            return
        self.offset_index.flush(sync=False)
        self.time_index.flush(sync=False)
        self.shown_size = self.size

    def unload(self) -> None:
        """Write what is only in memory and release files and memory; the next use reads it back."""
        for index in (self._offset_index, self._time_index, self._transaction_index):
            if index is not None:
                index.unload()
        self.log_directory.open_files.release(self)

    def mark_deleted(self) -> list[str]:
        """Rename the files as deleted; returns their new paths, to be removed later.

        A thread that still reads this segment uses the renamed files, because another segment may
        get the old names.
        """
        renamed: list[str] = []
        self.log_directory.open_files.release(self, lambda: renamed.extend(self._rename_files()))
        return renamed

    def on_renamed(self, directory: str) -> None:
        """The directory was renamed; open files stay open."""
        self.directory = directory
        for index in (self._offset_index, self._time_index, self._transaction_index):
            if index is not None:
                index.file.path = f"{directory}/{index.file.path.rpartition('/')[2]}"

    def _rename_files(self) -> Iterator[str]:
        filesystem = self.log_directory.filesystem
        for suffix in SEGMENT_SUFFIXES:
            path = self.stem + suffix
            if filesystem.exists(path):
                filesystem.rename(path, path + DELETED_SUFFIX)
                yield path + DELETED_SUFFIX
        self.removed = True
        for index in (self._offset_index, self._time_index, self._transaction_index):
            if index is not None:
                index.file.rename(index.file.path + DELETED_SUFFIX)

    def _path(self, suffix: str) -> str:
        return self.stem + suffix + (DELETED_SUFFIX if self.removed else "")
