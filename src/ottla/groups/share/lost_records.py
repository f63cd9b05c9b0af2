"""The state of records that the log of a leader does not have: an unclean election lost them.

All that was delivered is before the high watermark, which a leader elected cleanly has in its log.
What is appended at the offsets of lost records is new to the group, so nothing of their state may
apply to it. Whether followers have confirmed records does not matter: those are not lost.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.groups.share.delivery import DeliveryState, StateBatch
from ottla.groups.share.parked import ParkedChange
from ottla.groups.share.partition import Change

_LAST_OFFSET = 2**63 - 1


class Remaining(NamedTuple):
    batches: tuple[StateBatch, ...]
    parked: tuple[ParkedChange, ...]
    change: Change  # Resets what is persisted of the lost records.


def without_lost(
    start_offset: int,
    batches: Sequence[StateBatch],
    parked: Sequence[ParkedChange],
    log_end_offset: int,
) -> Remaining:
    """What a new leader takes over of the persisted state from the start offset on."""
    kept_batches = tuple(
        batch._replace(last_offset=min(batch.last_offset, log_end_offset - 1))
        for batch in batches
        if batch.first_offset < log_end_offset
    )
    kept_parked = tuple(_before(page, log_end_offset) for page in parked)
    lost_count = _count(parked) - _count(kept_parked)
    is_stale = any(
        batch.last_offset >= log_end_offset
        and (batch.state is not DeliveryState.AVAILABLE or batch.delivery_count > 0)
        for batch in batches
    )
    change = Change(start_offset, is_written=False)
    if lost_count:
        removed = ((log_end_offset, _LAST_OFFSET),)
        change = change._replace(
            parked=ParkedChange.of((), removed), lost_count=lost_count, is_written=True
        )
    if is_stale:
        last_offset = max(batch.last_offset for batch in batches)
        first_offset = max(log_end_offset, start_offset)
        reset = StateBatch(first_offset, last_offset, DeliveryState.AVAILABLE, 0)
        change = change._replace(batches=(reset,), is_written=True)
    return Remaining(kept_batches, kept_parked, change)


def _before(page: ParkedChange, offset: int) -> ParkedChange:
    if not page.offsets or page.offsets[-1] < offset:
        return page
    return ParkedChange.of(record for record in page.records() if record.offset < offset)


def _count(pages: Iterable[ParkedChange]) -> int:
    return sum(len(page.offsets) for page in pages)
