"""Which part of a compacted log can be compacted, and how urgently.

    log start       first dirty             first uncleanable        log end
        |  compacted     |  to be compacted         |  stays as it is    |

Left as it is: the active segment, what lies past the last stable offset, and segments with
records younger than min.compaction.lag.ms.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from ottla.storage.config import LONG_MAX
from ottla.storage.log import PartitionLog
from ottla.storage.segment import Segment


class Cleanable(NamedTuple):
    log: PartitionLog
    truncations_count: int  # The log's count, taken before anything else was read.
    first_dirty_offset: int
    first_uncleanable_offset: int  # The base offset of a segment.
    clean_bytes: int
    dirty_bytes: int
    overdue: bool  # By max.compaction.lag.ms.

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        if not self.dirty_bytes or self.log.config.takes_imports:
            return False
        return self.overdue or self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio


def cleanable_of(log: PartitionLog, checkpoint: int | None, now_ms: int) -> Cleanable:
    """`checkpoint` is the offset up to which the log was compacted; None if it never was."""
    truncations_count = log.truncations_count
    segments = log.segments
    first_dirty = log.log_start_offset if checkpoint is None else checkpoint
    if not log.log_start_offset <= first_dirty <= log.log_end_offset:
        first_dirty = log.log_start_offset
    end = _first_uncleanable_offset(log, segments, first_dirty, now_ms)
    cleanable = [segment for segment in segments[:-1] if segment.base_offset < end]
    dirty = [
        segment
        for segment, next_segment in pairwise(segments)
        if segment.base_offset < end and next_segment.base_offset > first_dirty
    ]
    clean_bytes = sum(segment.size for segment in cleanable if segment not in dirty)
    dirty_bytes = sum(segment.size for segment in dirty)
    overdue = _is_overdue(dirty, log.config.max_compaction_lag_ms, now_ms)
    return Cleanable(log, truncations_count, first_dirty, end, clean_bytes, dirty_bytes, overdue)


def _first_uncleanable_offset(
    log: PartitionLog, segments: Sequence[Segment], first_dirty: int, now_ms: int
) -> int:
    stable = log.last_stable_offset(log.high_watermark)
    young_ms = now_ms - log.config.min_compaction_lag_ms
    for segment, next_segment in pairwise(segments):
        if next_segment.base_offset > stable:
            return segment.base_offset
        is_dirty = next_segment.base_offset > first_dirty
        if is_dirty and log.config.min_compaction_lag_ms and segment.largest.timestamp > young_ms:
            return segment.base_offset
    return segments[-1].base_offset


def _is_overdue(dirty: Sequence[Segment], max_lag_ms: int, now_ms: int) -> bool:
    if max_lag_ms == LONG_MAX:
        return False
    filled = [segment for segment in dirty if segment.size]
    return any(0 < segment.first_batch().max_timestamp < now_ms - max_lag_ms for segment in filled)
