"""Decides which segments of a log are due for removal."""

from collections.abc import Sequence

from ottla.storage.config import LogConfig
from ottla.storage.segment import Segment


def expired_count(
    segments: Sequence[Segment],
    config: LogConfig,
    *,
    log_start_offset: int,
    high_watermark: int,
    end_offset: int,
    now_ms: int,
) -> int:
    """How many of the oldest segments to remove; all of them if even the active one is due.

    A segment is due when its largest timestamp is too old, when the log is too large without it, or
    when the log start offset has passed it, unless it reaches past the high watermark.
    """
    if config.takes_imports:
        return 0  # Restored records may be older than the retention time.
    excess_bytes = -1
    if config.delete and config.retention_bytes >= 0:
        excess_bytes = sum(segment.size for segment in segments) - config.retention_bytes
    count = 0
    ends = [*(segment.base_offset for segment in segments[1:]), end_offset]
    for segment, next_offset in zip(segments, ends, strict=True):
        excess_bytes -= segment.size
        is_active = count == len(segments) - 1
        due = (
            excess_bytes >= 0
            or (config.delete and _is_old(segment, config, now_ms))
            or (not is_active and next_offset <= log_start_offset)
        )
        if not due or next_offset > high_watermark or (is_active and not segment.size):
            break
        count += 1
    return count


def passed_count(segments: Sequence[Segment], log_start_offset: int) -> int:
    """How many of the oldest segments lie entirely before the log start offset."""
    count = 0
    for following in segments[1:]:
        if following.base_offset > log_start_offset:
            break
        count += 1
    return count


def _is_old(segment: Segment, config: LogConfig, now_ms: int) -> bool:
    if config.retention_ms < 0 or not segment.size:
        return False
    return now_ms - segment.retention_timestamp > config.retention_ms
