"""Compares the indexes of a segment with its batches, and rebuilds them if they are wrong."""

from collections.abc import Sequence

from ottla.records.batch import NO_TIMESTAMP, BatchHeader
from ottla.storage.damage import IntactBatch
from ottla.storage.errors import CorruptLog
from ottla.storage.found_batches import intact_batches, note_aborted, replay_producers
from ottla.storage.index_file import CorruptIndex
from ottla.storage.producer_state import ProducerStateManager
from ottla.storage.reading import find_batch_at
from ottla.storage.segment import Segment
from ottla.storage.transaction_index import AbortedTransaction


class IndexAudit:
    """Visits all batches of a closed segment in order."""

    def __init__(self, segment: Segment) -> None:
        self._offsets = iter(segment.offset_index.pairs())
        self._times = iter(segment.time_index.pairs())
        self._offset = next(self._offsets, None)
        self._time = next(self._times, None)
        self._largest = NO_TIMESTAMP
        self._is_wrong = segment.offset_index.is_refused or segment.time_index.is_refused

    @property
    def is_sound(self) -> bool:
        """Call after the last batch: every index entry was matched."""
        return not self._is_wrong and self._offset is None and self._time is None

    def on_batch(self, batch: IntactBatch) -> None:
        position, last_offset, timestamp = batch
        self._largest = max(self._largest, timestamp)
        if self._offset is not None and position >= self._offset[1]:
            self._is_wrong |= self._offset != (last_offset, position)
            self._offset = next(self._offsets, None)
        if self._time is not None and last_offset >= self._time[1]:
            self._is_wrong |= self._time != (self._largest, last_offset)
            self._time = next(self._times, None)


def validate_transactions(segments: Sequence[Segment], segment: Segment) -> None:
    """Raise CorruptIndex unless each aborted transaction has its marker and its first batch."""
    ended = {  # By producer id: a transaction begins after the previous one has ended.
        entry.producer_id: entry.last_offset
        for earlier in segments[: segments.index(segment)]
        for entry in earlier.transaction_index.entries
    }
    for entry in segment.transaction_index.entries:
        marker = _header_at(segment, entry.last_offset)
        first = None
        if segments[0].base_offset <= entry.first_offset <= entry.last_offset:
            found = find_batch_at(segments, entry.first_offset)
            first = None if found is None else _header_at(found.segment, entry.first_offset)
        is_sound = (
            ended.get(entry.producer_id, -1) < entry.first_offset <= entry.last_offset
            and entry.last_stable_offset <= entry.last_offset + 1
            and marker is not None
            and marker.is_control
            and marker.last_offset == entry.last_offset
            and marker.producer_id == entry.producer_id
            and (first is None or _begins(first, entry))
        )
        if not is_sound:
            raise CorruptIndex(segment.transaction_index.file.path, f"it lists {entry}")
        ended[entry.producer_id] = entry.last_offset


def rebuild_indexes(
    segments: Sequence[Segment],
    segment: Segment,
    producers: ProducerStateManager,
    log_start_offset: int,
    interval_bytes: int,
) -> None:
    """For a closed segment without damage; `producers` is new and has no snapshots."""
    replay_producers(producers, segments, log_start_offset, segment.base_offset)
    fresh = segment.with_new_indexes()
    for batch in intact_batches(segment):
        header = batch.header
        fresh.add_to_indexes(
            batch.position, header.size, header.last_offset, header.max_timestamp, interval_bytes
        )
        note_aborted(fresh, producers.replay(batch.buffer, batch.buffer_position, header))
    fresh.seal()
    fresh.flush_indexes()
    segment.take_indexes(fresh)


def _begins(header: BatchHeader, transaction: AbortedTransaction) -> bool:
    """Whether this can be the first batch; compaction may have removed or emptied that one."""
    if header.base_offset > transaction.first_offset or not header.records_count:
        return True
    return (
        header.base_offset == transaction.first_offset
        and header.producer_id == transaction.producer_id
    )


def _header_at(segment: Segment, offset: int) -> BatchHeader | None:
    if offset < segment.base_offset:
        return None
    try:
        batch = segment.find_offset(offset)
    except CorruptLog as error:
        raise CorruptIndex(segment.transaction_index.file.path, str(error)) from error
    if batch is None or segment.damage:
        return None
    return segment.header_at(batch.position)
