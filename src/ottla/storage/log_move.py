"""Copies a log into a second log directory, until the copy can replace it.

The copy follows its source as a replica follows its leader: it appends what the source has, starts
where the source starts, and after a truncation of the source it is truncated to the point where
both diverge, by their leader epochs (KIP-101).
"""

from ottla.protocol.lazy_dataclass import dataclass
from ottla.records.batch import read_header
from ottla.storage.first_batch import append_around_start, starts_within
from ottla.storage.leader_epochs import UNDEFINED_EPOCH
from ottla.storage.log import PartitionLog
from ottla.storage.reading import ReadHint

READ_BYTES = 1 << 20


@dataclass(slots=True, eq=False)
class LogMove:
    """`advance` runs in a thread; `finish` on the event loop, where no append interferes."""

    source: PartitionLog
    future: PartitionLog
    _truncations_count: int | None = None  # The source's, at the last comparison.
    _hint: ReadHint | None = None

    def advance(self) -> int:
        """Copy a piece; returns its size, or syncs and returns 0 if everything was there."""
        size = self._copy()
        if size == 0:
            self.future.flush()
        return size

    def finish(self) -> bool:
        """Copy the rest if it is one piece; True if nothing is left."""
        self._copy()
        return (
            self.future.log_end_offset == self.source.log_end_offset
            and self.source.truncations_count == self._truncations_count
        )

    def _copy(self) -> int:
        source, future = self.source, self.future
        truncations_count = source.truncations_count
        if truncations_count != self._truncations_count:
            align(source, future)
            self._truncations_count = truncations_count
        start_offset = source.log_start_offset
        if future.log_end_offset < start_offset:
            future.truncate_fully_and_start_at(start_offset)
        size = 0
        end_offset = source.log_end_offset
        if future.log_end_offset < end_offset:
            found = source.read(future.log_end_offset, READ_BYTES, end_offset, self._hint)
            if found is not None:
                self._hint = found.hint
                records = found.read()
                if source.truncations_count == truncations_count:
                    _append(future, memoryview(records))
                size = found.size
        if start_offset > future.log_start_offset:
            future.delete_records_before(min(start_offset, future.log_end_offset))
        future.high_watermark = max(
            min(source.high_watermark, future.log_end_offset), future.log_start_offset
        )
        return size


def _append(future: PartitionLog, records: memoryview) -> None:
    if not starts_within(future, records):
        future.append_as_follower(records)
        return
    start_offset = future.log_start_offset
    future.truncate_fully_and_start_at(read_header(records).base_offset)
    append_around_start(future, records, start_offset)


def align(source: PartitionLog, future: PartitionLog) -> None:
    """Truncate the copy to what it shares with its source."""
    if future.log_start_offset > source.log_start_offset:
        future.truncate_fully_and_start_at(source.log_start_offset)
    while True:
        end_offset = future.log_end_offset
        common = _common_end(source, future)
        if common >= end_offset:
            return
        future.truncate_to(common)


def _common_end(source: PartitionLog, future: PartitionLog) -> int:
    """A bound at or after the divergence; equals the copy's end once nothing must be removed."""
    end_offset = future.log_end_offset
    epoch = future.leader_epochs.latest_epoch
    if epoch == UNDEFINED_EPOCH:
        return min(end_offset, source.log_end_offset)
    found, found_end = source.leader_epochs.end_offset_for(epoch, source.log_end_offset)
    if found == epoch:
        return min(end_offset, found_end)
    return future.leader_epochs.entries[-1].start_offset
