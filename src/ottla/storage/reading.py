"""Locates the batches for a read in the segments of a log."""

import struct
from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from ottla.records.batch import read_header
from ottla.records.decoder import iterate_records
from ottla.storage.batch_walk import Batch
from ottla.storage.damage import Examination
from ottla.storage.errors import CorruptLog
from ottla.storage.filesystem import File
from ottla.storage.segment import Segment
from ottla.storage.transaction_index import AbortedTransaction

_base_offset = attrgetter("base_offset")
_BEGINNING = struct.Struct(">q4xi")  # Base offset and leader epoch of a batch.


class ReadHint(NamedTuple):
    """Where a sequential reader's next read begins."""

    generation: int  # The log's; a hint from before a truncation or compaction is void.
    segment: Segment
    position: int
    offset: int


class LogSlice(NamedTuple):
    """Whole batches in one file. The file stays readable while the slice is held."""

    file: File
    position: int
    size: int
    first_offset: int  # Not after the requested offset: that of the first batch, or less.
    next_offset: int
    hint: ReadHint

    def read(self) -> bytes:
        """The bytes; may wait for the disk."""
        return self.file.read(self.position, self.size)

    def read_cached(self) -> bytes | None:
        """The bytes; None if that would wait for the disk."""
        return self.file.read_cached(self.position, self.size)


class LogPosition(NamedTuple):
    """A boundary between batches: everything before it has offsets below `offset`."""

    segment: Segment
    position: int
    offset: int


class FoundTimestamp(NamedTuple):
    offset: int
    timestamp: int
    leader_epoch: int


def index_of(segments: Sequence[Segment], offset: int) -> int:
    """The index of the segment that would contain `offset`; 0 for one before the first segment."""
    return max(bisect_right(segments, offset, key=_base_offset) - 1, 0)


def find_batch_at(
    segments: Sequence[Segment], offset: int, *, cached_only: bool = False
) -> LogPosition | None:
    """The first batch whose last offset is at least `offset`; None if there is none."""
    for segment in segments[index_of(segments, offset) :]:
        batch = segment.find_offset(offset, cached_only=cached_only) if segment.size else None
        if batch is not None:
            return LogPosition(segment, batch.position, batch.base_offset)
    return None


def check_batches(file: File, position: int, end: int, floor: int, limit: LogPosition) -> None:
    """Raise CorruptLog if the batches from `position` to `end` are not intact.

    `limit` is where the readable batches end, with a lower bound for the next offset; a batch after
    `end` shows whether the last one before it has the right offset.
    """
    examination = Examination(file, position, end, floor=floor, ceiling=limit.offset)
    while not examination.is_done and not examination.damage:
        examination.advance(end - position)
    if examination.damage:
        found = examination.damage[0]
        raise CorruptLog(file.path, found.position, found.first_offset, found.reason)
    if end < limit.position:
        offset, epoch = _BEGINNING.unpack(file.read(end, _BEGINNING.size))
        if offset < examination.next_offset or -1 < epoch < examination.epoch:
            reason = f"{examination.next_offset} of epoch {examination.epoch} is expected"
            raise CorruptLog(file.path, end, offset, reason)


def segment_after(segments: Sequence[Segment], segment: Segment) -> Segment:
    """CorruptLog if there is none, which happens only while the log is being truncated."""
    index = bisect_right(segments, segment.base_offset, key=_base_offset)
    if index == len(segments):
        raise CorruptLog(segment.path, segment.size, -1, "no segment follows")
    return segments[index]


def find_timestamp(
    segments: Sequence[Segment], timestamp: int, start_offset: int, end: LogPosition
) -> FoundTimestamp | None:
    """The first record from `start_offset` on whose timestamp is at least this."""
    for segment in segments:
        if segment.largest.timestamp < timestamp:
            continue
        last = segment is end.segment
        size = end.position if last else segment.size
        start = segment.first_from(timestamp, start_offset)
        for batch in () if start is None else segment.batches(start.position):
            if batch.end > size:
                break
            if batch.max_timestamp >= timestamp and batch.last_offset >= start_offset:
                found = _first_in_batch(segment, batch, timestamp, start_offset)
                if found is not None:
                    return found
        if last:
            break
    return None


def find_max_timestamp(segments: Sequence[Segment], start_offset: int) -> FoundTimestamp | None:
    """The first record with the largest timestamp in the log."""
    holders = [segment for segment in segments if segment.size and segment.largest.timestamp >= 0]
    if not holders:
        return None
    segment = max(holders, key=lambda holder: holder.largest.timestamp)
    batch = segment.find_offset(max(segment.largest.offset, start_offset))
    if batch is None:
        return None
    return _first_in_batch(segment, batch, batch.max_timestamp, start_offset)


def collect_aborted(
    segments: Sequence[Segment], first_offset: int, end_offset: int
) -> list[AbortedTransaction]:
    """The aborted transactions with records in the range, sorted by first offset."""
    found: list[AbortedTransaction] = []
    for segment in segments[index_of(segments, first_offset) :]:
        transactions, complete = segment.transaction_index.collect(first_offset, end_offset)
        found += transactions
        if complete:
            break
    return sorted(found, key=attrgetter("first_offset"))


def _first_in_batch(
    segment: Segment, batch: Batch, timestamp: int, start_offset: int
) -> FoundTimestamp | None:
    data = segment.file().read(batch.position, batch.size)
    leader_epoch = read_header(data).partition_leader_epoch
    for record in iterate_records(data):
        if record.timestamp >= timestamp and record.offset >= start_offset:
            return FoundTimestamp(record.offset, record.timestamp, leader_epoch)
    return None
