"""Where a follower's log leaves the leader's, seen from both sides (KIP-595, KIP-630).

The leader compares the place that a fetch names with its own log. A follower that is told of a
divergence cuts its log at the end of the largest epoch that both know, and asks again; each round
goes back by at least an epoch.
"""

import enum

from ottla.raft.log import OffsetAndEpoch, PendingLog


class Place(enum.Enum):
    """How the place that a fetch names lies to the leader's log."""

    VALID = enum.auto()
    DIVERGING = enum.auto()
    BEFORE_SNAPSHOT = enum.auto()


def locate(log: PendingLog, place: OffsetAndEpoch) -> Place:
    if place.offset == 0 and log.start_offset == 0:
        return Place.VALID
    if log.start_offset > 0 and _is_before_start(log, place):
        return Place.BEFORE_SNAPSHOT
    known = log.end_offset_for_epoch(place.epoch)
    if known.epoch != place.epoch or known.offset < place.offset:
        return Place.DIVERGING
    return Place.VALID


def _is_before_start(log: PendingLog, place: OffsetAndEpoch) -> bool:
    epoch = log.epoch_before_start()
    return (
        place.offset < log.start_offset
        or place.epoch < epoch
        or (place.offset == log.start_offset and place.epoch != epoch)
    )


def truncation_offset(log: PendingLog, diverging: OffsetAndEpoch) -> int:
    """Where a follower cuts, when the leader's largest common epoch ends at `diverging`."""
    local = log.end_offset_for_epoch(diverging.epoch)
    if local.epoch == diverging.epoch:
        return min(local.offset, diverging.offset)
    return local.offset
