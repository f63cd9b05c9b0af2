"""Where a follower's log diverges from the leader's, seen from both sides (KIP-595, KIP-630).

The leader compares the log end in a fetch with its own log. A follower that is told of a divergence
truncates its log to the end of the largest epoch that both know, and fetches again; each round goes
back by at least one epoch.
"""

import enum

from ottla.raft.log import OffsetAndEpoch, PendingLog


class LogComparison(enum.Enum):
    """How the end of a follower's log relates to the leader's log."""

    VALID = enum.auto()
    DIVERGING = enum.auto()
    BEFORE_SNAPSHOT = enum.auto()


def compare_end(log: PendingLog, end: OffsetAndEpoch) -> LogComparison:
    if end.offset == 0 and log.start_offset == 0:
        return LogComparison.VALID
    if log.start_offset > 0 and _is_before_start(log, end):
        return LogComparison.BEFORE_SNAPSHOT
    known = log.end_offset_for_epoch(end.epoch)
    if known.epoch != end.epoch or known.offset < end.offset:
        return LogComparison.DIVERGING
    return LogComparison.VALID


def _is_before_start(log: PendingLog, end: OffsetAndEpoch) -> bool:
    epoch = log.epoch_before_start()
    return (
        end.offset < log.start_offset
        or end.epoch < epoch
        or (end.offset == log.start_offset and end.epoch != epoch)
    )


def truncation_offset(log: PendingLog, diverging: OffsetAndEpoch) -> int:
    """Where a follower truncates if the leader's largest common epoch ends at `diverging`."""
    local = log.end_offset_for_epoch(diverging.epoch)
    if local.epoch == diverging.epoch:
        return min(local.offset, diverging.offset)
    return local.offset
