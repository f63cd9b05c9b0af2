"""The segments of one log and where it ends: bytes and positions, no policy.

Changes are not thread-safe; the partition's log holds its lock around each of them. Reads need no
lock: `segments` and the log positions are replaced as a whole. A read that fails because
`generation` changed meanwhile must be retried.
"""

import logging
import threading
import zlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.batch import NO_TIMESTAMP, BatchHeader
from ottla.storage.batch_walk import Batch
from ottla.storage.cleaned_segment import CleanedSegment
from ottla.storage.config import LogConfig
from ottla.storage.errors import CorruptLog, KnownDamage, NotCached
from ottla.storage.log_directory import SHORT_OF_SPACE, LogDirectory
from ottla.storage.reading import (
    LogPosition,
    LogSlice,
    ReadHint,
    check_batches,
    find_batch_at,
    index_of,
    segment_after,
)
from ottla.storage.segment import ROLL_NOW, Segment
from ottla.storage.segment_swap import swap_segments

logger = logging.getLogger(__name__)

_new_tuple = tuple.__new__  # Cheaper than the constructors of named tuples.


class FlushWork(NamedTuple):
    """What a flush has to sync, captured when the flush began."""

    generation: int
    rolled: tuple[Segment, ...]
    end: LogPosition
    changes_count: int


def _is_past(segment: Segment, size: int, header: BatchHeader) -> bool:
    """Whether the segment must be rolled before appending `size` bytes that end with this batch."""
    return (
        segment.size + size > segment.roll_size
        or header.max_timestamp > segment.roll_timestamp
        or header.last_offset > segment.roll_offset
    )


def _up_to_damage(segment: Segment, position: int, end: LogPosition) -> tuple[int, int]:
    """Where a read from `position` must stop, and the offset there."""
    damage = segment.damage_from(position)
    if damage is None or damage.position >= end.position:
        return end.position, end.offset
    if damage.position <= position:
        raise KnownDamage(segment.path, damage.position, damage.first_offset, damage.reason)
    return damage.position, damage.first_offset


class LocalLog:
    __slots__ = (
        "_changes_count",
        "_changes_synced",
        "_config",
        "_flushed",
        "_limit",
        "_lock",
        "_on_roll",
        "_rolled",
        "_sealed_bytes",
        "active",
        "closed",
        "directory",
        "end",
        "generation",
        "log_directory",
        "segments",
        "truncations_count",
    )

    def __init__(
        self,
        *,
        log_directory: LogDirectory,
        directory: str,
        config: LogConfig,
        segments: tuple[Segment, ...],
        end_offset: int,
        lock: threading.Lock,
        on_roll: Callable[[int], object],
    ) -> None:
        """`lock` is the one that the partition's log holds around changes."""
        self.log_directory = log_directory
        self.directory = directory
        self.segments = segments  # Oldest first, at least one.
        self._lock = lock
        self._activate(segments[-1])
        self.end = LogPosition(self.active, self.active.size, end_offset)
        self.generation = 0  # Counts changes that move or remove batches.
        self.truncations_count = 0  # Counts truncations of the end.
        self._config = config
        self._on_roll = on_roll  # Called with the base offset of the new segment.
        self._rolled: tuple[Segment, ...] = ()  # Not synced since the roll.
        self._sealed_bytes = 0  # Of the segments rolled since the log was opened.
        self._changes_count = 0  # Files created, removed or truncated.
        self._changes_synced = 0  # How many of them are on disk.
        self._flushed = self.end
        self._limit = (end_offset, self.end)  # The last limit of reads, and its position.
        self.closed = False
        self._set_roll_bounds()

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def appended_bytes(self) -> int:
        """Counts from an arbitrary origin; deletion does not lower it, truncation may."""
        return self._sealed_bytes + self.active.size

    @property
    def has_rolled(self) -> bool:
        return bool(self._rolled)

    @property
    def flushed_offset(self) -> int:
        return self._flushed.offset

    def ends(self) -> list[LogPosition]:
        """The end position of each segment, with the offset that follows it."""
        end, segments = self.end, self.segments
        closed = [
            LogPosition(segment, segment.size, following.base_offset)
            for segment, following in pairwise(segments)
        ]
        return [*closed, end] if segments[-1] is end.segment else closed

    def configure(self, config: LogConfig) -> None:
        self._config = config
        self._set_roll_bounds()

    def write(self, batch: memoryview, last_offset: int, max_timestamp: int) -> None:
        """Append one batch; OSError and ApiError leave the log unchanged."""
        if self.log_directory.failure is not None:
            raise self.log_directory.failure
        segment = self.active
        size = len(batch)
        if (
            segment.size + size > segment.roll_size
            or max_timestamp > segment.roll_timestamp
            or last_offset > segment.roll_offset
        ):
            segment = self._roll_before(size)
        position = segment.append(
            batch, last_offset, max_timestamp, self._config.index_interval_bytes
        )
        if not position:
            self._changes_count += 1
            self._set_roll_timestamp(segment, max_timestamp)
        self.end = _new_tuple(LogPosition, (segment, position + size, last_offset + 1))

    def write_run(self, records: memoryview, batches: Sequence[tuple[int, BatchHeader]]) -> int:
        """Append, in one write, as many batches as fit into one segment; returns their count."""
        if self.log_directory.failure is not None:
            raise self.log_directory.failure
        start, first = batches[0]
        segment = self.active
        if _is_past(segment, first.size, first):
            segment = self._roll_before(first.size)
        count = 1
        while count < len(batches):
            position, header = batches[count]
            if _is_past(segment, position + header.size - start, header):
                break
            count += 1
        last_position, last = batches[count - 1]
        written_at = segment.append_all(records[start : last_position + last.size])
        for position, header in batches[:count]:
            segment.add_to_indexes(
                written_at + position - start,
                header.size,
                header.last_offset,
                header.max_timestamp,
                self._config.index_interval_bytes,
            )
        if not written_at:
            self._changes_count += 1
            self._set_roll_timestamp(segment, first.max_timestamp)
        self.end = LogPosition(segment, segment.size, last.next_offset)
        return count

    def read(
        self,
        offset: int,
        size_max: int,
        offset_limit: int,
        hint: ReadHint | None,
        cached_only: bool,
    ) -> LogSlice | None:
        """See `PartitionLog.read`; the offset is in the log, below its end and the limit."""
        generation = self.generation
        stop = self.end
        if offset_limit < stop.offset:
            stop = self._position_of_limit(offset_limit, cached_only)
        if hint is not None and hint.offset == offset and hint.generation == generation:
            _, segment, position, first_offset = hint
            if position == segment.size and segment is not stop.segment:
                segment, position = segment_after(self.segments, segment), 0
        else:
            found = find_batch_at(self.segments, offset, cached_only=cached_only)
            if found is None:
                return None
            segment, position, first_offset = found
        if segment is stop.segment:
            _, end_position, next_offset = stop
        else:
            end_position = segment.size
            next_offset = segment_after(self.segments, segment).base_offset
        trusted = LogPosition(segment, end_position, next_offset)
        if segment.damage:
            end_position, next_offset = _up_to_damage(segment, position, trusted)
        if end_position - position > size_max:
            end_position, next_offset = segment.boundary_by(
                position, position + size_max, cached_only=cached_only
            )
        if end_position <= position:
            return None
        if segment.unverified and not segment.is_verified(position, end_position):
            if cached_only:
                raise NotCached
            check_batches(segment.file(), position, end_position, segment.base_offset, trusted)
            segment.on_verified(position, end_position)
        return LogSlice(
            segment.file(),
            position,
            end_position - position,
            first_offset,
            next_offset,
            ReadHint(generation, segment, end_position, next_offset),
        )

    def _position_of_limit(self, limit: int, cached_only: bool) -> LogPosition:
        """Where the batches before `limit` end; limits advance, mostly to the flushed offset."""
        known, found = self._limit
        if known == limit:
            return found
        flushed = self._flushed
        if flushed.offset == limit:
            found = flushed
        elif known < limit and found.segment is self.active:
            segment, start, _ = found
            batch = segment.find_offset(limit, start=start, cached_only=cached_only)
            found = LogPosition(segment, batch.position, batch.base_offset) if batch else self.end
        else:
            found = find_batch_at(self.segments, limit, cached_only=cached_only) or self.end
        self._limit = (limit, found)
        return found

    def roll(self) -> Segment:
        """Begin a new segment, unless the active one is empty."""
        old = self.active
        if not old.size:
            return old
        offset = self.end.offset
        old.seal()
        self._on_roll(offset)
        self.log_directory.open_files.set_writer(old, None)
        self._rolled = (*self._rolled, old)
        self._sealed_bytes += old.size
        self._begin(offset, self.segments)
        return self.active

    def begin_flush(self) -> FlushWork | None:
        """None if everything is synced."""
        if (
            self.end.offset == self._flushed.offset
            and not self._rolled
            and self._changes_count == self._changes_synced
        ):
            return None
        return FlushWork(self.generation, self._rolled, self.end, self._changes_count)

    def sync(self, work: FlushWork) -> None:
        """Runs outside the lock: the only part of a flush that waits for the disk."""
        for segment in work.rolled:
            self._sync_segment(segment, indexes=True)
        changed = work.changes_count > self._changes_synced
        if work.end.segment.on_disk and (changed or work.end.offset > self._flushed.offset):
            self._sync_segment(work.end.segment, indexes=False)
        if work.rolled or changed:
            self.log_directory.filesystem.sync_directory(self.directory)

    def end_flush(self, work: FlushWork) -> None:
        """A segment rolled meanwhile stays listed until a flush has synced all of it."""
        self._rolled = tuple(segment for segment in self._rolled if segment not in work.rolled)
        self._changes_synced = max(self._changes_synced, work.changes_count)
        if work.generation == self.generation and work.end.offset >= self._flushed.offset:
            self._flushed = work.end

    def show_indexes(self) -> None:
        """Write the indexes of the active segment, for other programs to read."""
        if not self.closed:
            self._write_indexes(self.active, Segment.show_indexes)

    def end_before(self, offset: int) -> LogPosition:
        """Where the log would end without the batches that reach to or past `offset`."""
        kept = self.segments[index_of(self.segments, offset)]
        batch = self._find_batch(kept, offset) if kept.size else None
        if batch is None:
            return LogPosition(kept, kept.size, max(offset, kept.base_offset))
        return LogPosition(
            kept, batch.position, min(max(offset, kept.base_offset), batch.base_offset)
        )

    def _find_batch(self, segment: Segment, offset: int) -> Batch | None:
        """A wrong index must not prevent the truncation, and so the repair, of a damaged log."""
        try:
            return segment.find_offset(offset)
        except CorruptLog:
            segment.offset_index.reset()
            return segment.find_offset(offset)

    def truncate_to(self, offset: int) -> int:
        """Remove the batches that reach to or past `offset`; returns the new end offset.

        Later segments are removed first, from the last one back, so that a crash leaves a log
        without a hole.
        """
        kept, position, end_offset = self.end_before(offset)
        index = self.segments.index(kept)
        if index + 1 < len(self.segments):
            self._forget(self.segments[:index:-1])
            self.log_directory.filesystem.sync_directory(self.directory)
        self.segments = self.segments[: index + 1]
        self._activate(kept)
        kept.truncate_to(position, end_offset)
        self._set_roll_bounds()
        self._on_end_moved(end_offset)
        return end_offset

    def start_anew(self, offset: int) -> None:
        """Remove everything; the log is then empty and begins at `offset`."""
        self._forget(self.segments[::-1])
        self._begin(offset, ())
        self.active.file()  # The file name records where the log begins.
        self._on_end_moved(offset)

    def remove_first(self, count: int) -> None:
        """Remove the oldest segments, but never the active one."""
        assert count < len(self.segments)
        if not self.segments[count].on_disk:
            # The file name records the next offset, so it must exist before the others go.
            self.segments[count].file()
            self.log_directory.filesystem.sync_directory(self.directory)
        removed, self.segments = self.segments[:count], self.segments[count:]
        self._forget(removed)

    def replace(
        self, old: Sequence[Segment], cleaned: CleanedSegment, truncations_count: int
    ) -> bool:
        """Replace `old` with a compacted segment, whose files are synced.

        False if those segments changed or wait for a flush, or if the log was truncated since the
        count was taken: the record that outdates another may be gone, and then the other must stay.
        """
        first = index_of(self.segments, old[0].base_offset)
        after = first + len(old)
        if (
            self.closed
            or self.truncations_count != truncations_count
            or self.segments[first:after] != tuple(old)
            or self.active in old
            or any(segment in self._rolled for segment in old)
        ):
            return False
        self.generation += 1
        self._changes_count += 1
        deleted = swap_segments(
            self.log_directory.filesystem, self.directory, cleaned.base_offset, old
        )
        compacted = Segment(
            self.log_directory, self.directory, cleaned.base_offset, size=cleaned.size, on_disk=True
        )
        compacted.on_verified(0, cleaned.size)
        compacted.are_transactions_verified = True
        self.segments = (*self.segments[:first], compacted, *self.segments[after:])
        self.generation += 1
        if self._flushed.segment in old:
            self._flushed = LogPosition(self.segments[first + 1], 0, self._flushed.offset)
        self._limit = (self.end.offset, self.end)
        self.log_directory.discard(deleted, self._config.file_delete_delay_ms)
        return True

    def close(self) -> None:
        """Release files and memory; no append may follow."""
        self.closed = True
        self.active.roll_size = ROLL_NOW
        for segment in self.segments:
            segment.unload()
        if any(segment.wrote_transaction_index for segment in self.segments):
            # If the name were lost, nothing would show that there was an index.
            self.log_directory.filesystem.sync_directory(self.directory)

    def abandon(self) -> None:
        """The directory is gone or going; nothing is written any more."""
        self.closed = True
        self.active.roll_size = ROLL_NOW
        for segment in self.segments:
            segment.removed = True
            self.log_directory.open_files.release(segment)

    def on_renamed(self, directory: str) -> None:
        self.directory = directory
        for segment in self.segments:
            segment.on_renamed(directory)

    def _sync_segment(self, segment: Segment, *, indexes: bool) -> None:
        try:
            segment.sync()
            if indexes:
                self._write_indexes(segment, Segment.flush_indexes)
        except FileNotFoundError:
            if not segment.removed:
                raise

    def _write_indexes(self, segment: Segment, write: Callable[[Segment], None]) -> None:
        """On a full disk they stay in memory; a start after a crash rebuilds them."""
        try:
            write(segment)
        except OSError as error:
            if error.errno not in SHORT_OF_SPACE:
                raise
            logger.warning("cannot write the indexes of %s: %s", segment.path, error)

    def _forget(self, segments: Sequence[Segment]) -> None:
        """Remove segments from the log, in this order."""
        self.generation += 1
        self._changes_count += 1
        self._rolled = tuple(segment for segment in self._rolled if segment not in segments)
        for segment in segments:
            self.log_directory.discard(segment.mark_deleted(), self._config.file_delete_delay_ms)

    def _begin(self, offset: int, before: tuple[Segment, ...]) -> None:
        segment = Segment(self.log_directory, self.directory, offset)
        self.segments = (*before, segment)
        self._activate(segment)
        self.end = LogPosition(segment, 0, offset)
        self._set_roll_bounds()

    def _activate(self, segment: Segment) -> None:
        self.log_directory.open_files.set_writer(segment, self._lock)
        self.active = segment

    def _on_end_moved(self, offset: int) -> None:
        """Note a truncation, which a power loss may undo."""
        self.generation += 1
        self.truncations_count += 1
        self._changes_count += 1
        self._rolled = tuple(segment for segment in self._rolled if segment is not self.active)
        self.end = LogPosition(self.active, self.active.size, offset)
        if self._flushed.offset > offset:
            self._flushed = self.end
        self._limit = (offset, self.end)

    def _roll_before(self, size: int) -> Segment:
        if self.closed:
            raise ApiError(ErrorCode.unknown_topic_or_partition, f"{self.directory} is closed")
        if size > self._config.segment_bytes:
            raise ApiError(
                ErrorCode.record_list_too_large,
                f"a batch of {size} bytes; segment.bytes is {self._config.segment_bytes}",
            )
        return self.roll()

    def _set_roll_bounds(self) -> None:
        segment = self.active
        segment.index_bytes_max = self._config.segment_index_bytes
        segment.roll_size = self._config.segment_bytes
        if segment.size:
            self._set_roll_timestamp(segment, segment.first_batch().max_timestamp)

    def _set_roll_timestamp(self, segment: Segment, timestamp: int) -> None:
        """A segment's age counts from its first batch, by record timestamps."""
        if timestamp != NO_TIMESTAMP:
            config = self._config
            jitter_ms = min(config.segment_jitter_ms, config.roll_ms)
            if jitter_ms:
                jitter_ms = zlib.crc32(segment.stem.encode()) % (jitter_ms + 1)
            segment.roll_timestamp = timestamp + config.roll_ms - jitter_ms
