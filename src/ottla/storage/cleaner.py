"""Compaction: keeps the last record of each key.

A round on one log has three steps. The keys of the dirty part are mapped to their last offsets, as
many as fit into memory. The segments up to there are rewritten without the outdated records, small
neighbours merged into one. Each new segment is swapped in for the ones it was made from.

The offsets, order and timestamps of the remaining records do not change, so readers notice nothing.

The work runs in its own thread. It reads only the segments before the active one, writes to files
that nobody else knows, and changes the log in one call, `replace_segments`, which the log refuses
if those segments were truncated or deleted meanwhile. A crash at any moment leaves either the old
segments or the new one (see `segment_swap`).
"""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple, TypeVar

from ottla.protocol.topics import TopicPartition
from ottla.records.batch import BatchHeader, read_header, validate_checksum
from ottla.records.decoder import iterate_records, parse_marker
from ottla.records.errors import RecordError
from ottla.storage.batch_filter import BatchFilter
from ottla.storage.checkpoints import CLEANER_CHECKPOINT, read_offsets, write_offsets
from ottla.storage.cleanable import Cleanable, cleanable_of
from ottla.storage.cleaned_segment import CleanedSegmentWriter
from ottla.storage.cleaned_transactions import CleanedTransactions
from ottla.storage.config import LogConfig
from ottla.storage.errors import CorruptLog
from ottla.storage.filesystem import Filesystem, parent_of
from ottla.storage.found_batches import read_batches
from ottla.storage.log import PartitionLog
from ottla.storage.offset_map import OffsetMap
from ottla.storage.record_scan import body_of, scan_records
from ottla.storage.segment import Segment
from ottla.storage.sparse_index import RELATIVE_OFFSET_MAX
from ottla.storage.text_checkpoint import CorruptCheckpoint
from ottla.storage.transaction_index import AbortedTransaction

T = TypeVar("T")

logger = logging.getLogger(__name__)


class CleaningAborted(Exception):
    """The log changed meanwhile, or the cleaner is stopping; the log is unchanged."""


class Cleaned(NamedTuple):
    topic_partition: TopicPartition
    end_offset: int  # The log is now compacted up to here.
    bytes_read: int
    bytes_written: int


class LogCleaner:
    """Compacts the logs that need it most, and remembers how far each one is compacted.

    Single-threaded, except for `on_truncated` and `on_deleted`.
    """

    def __init__(
        self,
        filesystem: Filesystem,
        now_ms: Callable[[], int],
        *,
        dedupe_buffer_size: int,
        io_buffer_size: int,
        on_work: Callable[[int], object] = lambda _: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """`on_work` gets the number of bytes read and written, and may block (see `Throttle`)."""
        self._filesystem = filesystem
        self._now_ms = now_ms
        self.dedupe_buffer_size = dedupe_buffer_size
        self.io_buffer_size = io_buffer_size
        self._on_work = on_work
        self._should_stop = should_stop
        self._guard = threading.RLock()  # Guards the checkpoints.
        self._checkpoints: dict[str, dict[TopicPartition, int]] = {}  # By log directory.
        self._uncleanable: set[str] = set()  # Directories of partitions with damaged batches.

    @property
    def uncleanable_count(self) -> int:
        return len(self._uncleanable)

    def clean_filthiest(self, logs: Iterable[PartitionLog]) -> Cleaned | None:
        """Compact the log with the largest dirty ratio; None if none is due or the log changed.

        Raises the result of `LogDirectory.on_error` for a disk error.
        """
        candidates = [self._cleanable(log) for log in logs if self._may_clean(log)]
        due = [cleanable for cleanable in candidates if cleanable and cleanable.is_due]
        if not due:
            return None
        cleanable = max(due, key=lambda candidate: (candidate.overdue, candidate.dirty_ratio))
        return self._attempt(cleanable.log, lambda: self.clean(cleanable))

    def clean(self, cleanable: Cleanable) -> Cleaned:
        """One round; segments swapped in before CleaningAborted stay."""
        log = cleanable.log
        log.flush()  # Segments that wait for a sync cannot be replaced.
        round_ = _Round(
            self._filesystem, cleanable, self._now_ms(), self.io_buffer_size, self._on_piece
        )
        offsets = round_.map_offsets(self.dedupe_buffer_size)
        end_offset = offsets.latest_offset + 1
        round_.rewrite(offsets, end_offset)
        log.flush()  # Syncs the directory, so that the old files may go.
        with self._guard:
            if log.truncations_count != cleanable.truncations_count:
                raise CleaningAborted("the log was truncated")
            self._move_checkpoint(log, end_offset)
        return Cleaned(log.topic_partition, end_offset, round_.bytes_read, round_.bytes_written)

    def cleaned_offset(self, log: PartitionLog) -> int | None:
        """The offset up to which the log is compacted; None if it never was."""
        return self._checkpoint_of(log).get(log.topic_partition)

    def on_truncated(self, log: PartitionLog, offset: int) -> None:
        """Mark what is appended from `offset` on as dirty after a truncation; from any thread."""
        with self._guard:
            self._uncleanable.discard(log.directory)
            cleaned_offset = self.cleaned_offset(log)
            if cleaned_offset is not None and cleaned_offset > offset:
                self._move_checkpoint(log, offset)

    def on_deleted(self, directory: str, topic_partition: TopicPartition) -> None:
        """`directory` is the partition's; callable from any thread."""
        with self._guard:
            self._uncleanable.discard(directory)
            checkpoint = self._checkpoints.get(parent_of(directory), {})
            if checkpoint.pop(topic_partition, None) is not None:
                self._write_checkpoint(parent_of(directory))

    def _may_clean(self, log: PartitionLog) -> bool:
        return (
            log.config.compact
            and log.log_directory.failure is None
            and log.directory not in self._uncleanable
        )

    def _cleanable(self, log: PartitionLog) -> Cleanable | None:
        return self._attempt(
            log, lambda: cleanable_of(log, self.cleaned_offset(log), self._now_ms())
        )

    def _attempt(self, log: PartitionLog, action: Callable[[], T]) -> T | None:
        """Run the action; an error that concerns only this log is logged and swallowed."""
        directory = log.directory
        try:
            return action()
        except CleaningAborted as error:
            logger.info("gave up compacting %s: %s", directory, error)
        except (RecordError, CorruptLog) as error:
            self._uncleanable.add(directory)
            logger.error("%s is no longer compacted: %s", directory, error)
            for segment in log.segments[:-1]:
                log.log_directory.suspect(log.topic_partition, segment.base_offset, str(error))
        except OSError as error:
            if not any(segment.removed for segment in log.segments):
                raise log.log_directory.on_error(error) from error
            logger.info("gave up compacting %s: it was deleted", directory)
        return None

    def _on_piece(self, work_bytes: int) -> None:
        self._on_work(work_bytes)
        if self._should_stop():
            raise CleaningAborted("the broker stops")

    def _checkpoint_of(self, log: PartitionLog) -> dict[TopicPartition, int]:
        directory = parent_of(log.directory)
        with self._guard:
            if directory not in self._checkpoints:
                self._checkpoints[directory] = self._read_checkpoint(directory)
            return self._checkpoints[directory]

    def _read_checkpoint(self, directory: str) -> dict[TopicPartition, int]:
        try:
            return read_offsets(self._filesystem, f"{directory}/{CLEANER_CHECKPOINT}")
        except CorruptCheckpoint as error:
            logger.warning("all logs in %s will be compacted from the start: %s", directory, error)
            return {}

    def _move_checkpoint(self, log: PartitionLog, offset: int) -> None:
        self._checkpoint_of(log)[log.topic_partition] = offset
        self._write_checkpoint(parent_of(log.directory))

    def _write_checkpoint(self, directory: str) -> None:
        path = f"{directory}/{CLEANER_CHECKPOINT}"
        write_offsets(self._filesystem, path, self._checkpoints[directory])


class _Round:
    """One pass over a log."""

    def __init__(
        self,
        filesystem: Filesystem,
        cleanable: Cleanable,
        now_ms: int,
        io_buffer_size: int,
        on_work: Callable[[int], object],
    ) -> None:
        self._filesystem = filesystem
        self._log = cleanable.log
        self._first_dirty_offset = cleanable.first_dirty_offset
        self._now_ms = now_ms
        self.io_buffer_size = io_buffer_size
        all_segments = cleanable.log.segments
        self._all_segments = all_segments
        self._next_offsets = {
            segment: following.base_offset for segment, following in pairwise(all_segments)
        }
        self._segments = [
            segment
            for segment in all_segments[:-1]
            if segment.base_offset < cleanable.first_uncleanable_offset
        ]
        self._truncations_count = cleanable.truncations_count
        self._end_offset = cleanable.first_uncleanable_offset
        self._on_work = on_work
        self.bytes_read = 0
        self.bytes_written = 0

    def map_offsets(self, memory_bytes: int) -> OffsetMap:
        """Map the keys of the dirty part, as far as memory allows."""
        offsets = OffsetMap(memory_bytes)
        with self._reading(self._segments):
            self._map_into(offsets)
        return offsets

    def _map_into(self, offsets: OffsetMap) -> None:
        transactions = CleanedTransactions()
        start = self._first_dirty_offset
        offsets.latest_offset = start - 1
        transactions.add_aborted(self._aborted(start, self._end_offset))
        for segment in self._segments:
            next_offset = self._next_offsets[segment]
            if next_offset <= start:
                continue
            for batch, header in self._batches(
                segment, segment.offset_index.lookup(start).position
            ):
                if header.last_offset < start:
                    continue
                if offsets.is_full:
                    return
                _map_batch(batch, header, offsets, transactions, start)
                offsets.latest_offset = header.last_offset
            offsets.latest_offset = next_offset - 1

    def rewrite(self, offsets: OffsetMap, end_offset: int) -> None:
        transactions = CleanedTransactions()
        segments = [segment for segment in self._segments if segment.base_offset < end_offset]
        for group in group_segments(segments, self._log.config, self._end_offset):
            self._rewrite_group(group, offsets, transactions)

    def _rewrite_group(
        self, group: Sequence[Segment], offsets: OffsetMap, transactions: CleanedTransactions
    ) -> None:
        writer = CleanedSegmentWriter(
            self._filesystem, self._log.directory, group[0].base_offset, self._log.config
        )
        try:
            with self._reading(group):
                self._filter_into(writer, group, offsets, transactions)
                with_transactions = any(segment.transaction_index.entries for segment in group)
            cleaned = writer.finish(with_transactions=with_transactions)
        except (CleaningAborted, RecordError, CorruptLog, OSError):
            writer.discard()
            raise
        self.bytes_written += cleaned.size
        if not self._log.replace_segments(group, cleaned, self._truncations_count):
            writer.discard()
            raise CleaningAborted("the log was truncated or deleted")

    def _filter_into(
        self,
        writer: CleanedSegmentWriter,
        group: Sequence[Segment],
        offsets: OffsetMap,
        transactions: CleanedTransactions,
    ) -> None:
        filter_ = BatchFilter(
            offsets,
            transactions,
            self._log.producers.last_records(),
            writer.add_aborted,
            self._now_ms,
            self._log.config.delete_retention_ms,
        )
        last_filled = next((segment for segment in reversed(group) if segment.size), None)
        for segment in group:
            next_offset = self._next_offsets[segment]
            transactions.add_aborted(self._aborted(segment.base_offset, next_offset))
            left = segment.size
            for batch, header in self._batches(segment, 0):
                left -= header.size
                kept = filter_.apply(batch, header, last=segment is last_filled and not left)
                if kept is not None:
                    writer.append(kept, read_header(kept))
                    self._on_work(len(kept))

    @contextmanager
    def _reading(self, segments: Sequence[Segment]) -> Iterator[None]:
        """Apparent damage is ignored if the segments were truncated or removed meanwhile."""
        try:
            yield
        except (RecordError, CorruptLog, FileNotFoundError) as error:
            truncated = self._log.truncations_count != self._truncations_count
            if truncated or any(segment.removed for segment in segments):
                raise CleaningAborted("the log was truncated or deleted") from error
            raise

    def _aborted(self, start: int, end: int) -> Iterator[AbortedTransaction]:
        """All aborted transactions overlapping the range; markers may be in later segments."""
        for segment in self._all_segments:
            if segment.size:
                found = segment.transaction_index.collect(start, end)
                yield from found.transactions
                if found.complete:
                    return

    def _batches(self, segment: Segment, position: int) -> Iterator[tuple[memoryview, BatchHeader]]:
        """Each batch, as its own view."""
        for found in read_batches(segment.file(), position, segment.size, self.io_buffer_size):
            header, start = found.header, found.buffer_position
            yield memoryview(found.buffer)[start : start + header.size], header
            self.bytes_read += header.size
            self._on_work(header.size)


def group_segments(
    segments: Sequence[Segment], config: LogConfig, end_offset: int
) -> list[list[Segment]]:
    """Group neighbours that fit into one segment, by log size, index sizes and offset range."""
    groups: list[list[Segment]] = []
    ends = [segment.base_offset for segment in segments[1:]] + [end_offset]
    for segment, next_offset in zip(segments, ends, strict=False):
        group = [*groups[-1], segment] if groups else []
        if (
            group
            and sum(each.size for each in group) <= config.segment_bytes
            and sum(each.offset_index.size for each in group) <= config.segment_index_bytes
            and sum(each.time_index.size for each in group) <= config.segment_index_bytes
            and next_offset - 1 - group[0].base_offset <= RELATIVE_OFFSET_MAX
        ):
            groups[-1] = group
        else:
            groups.append([segment])
    return groups


def _map_batch(
    batch: memoryview,
    header: BatchHeader,
    offsets: OffsetMap,
    transactions: CleanedTransactions,
    start: int,
) -> None:
    validate_checksum(batch, 0, header)
    if header.is_control:
        for control in iterate_records(batch):
            transactions.on_marker(header, parse_marker(control))
    elif not transactions.on_batch(header):
        for record in scan_records(body_of(batch, header), header):
            if record.key is not None and record.offset >= start:
                offsets.put(record.key, record.offset)
