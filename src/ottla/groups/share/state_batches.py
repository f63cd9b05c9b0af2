"""Overlays state batches."""

from collections.abc import Iterable
from itertools import pairwise

from ottla.groups.share.delivery import StateBatch


def overlay(
    old: Iterable[StateBatch], new: Iterable[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """`new` over `old`, without what lies before the start offset."""
    covering = sorted(new)
    pieces = [*covering]
    for batch in old:
        pieces.extend(_uncovered(batch, covering))
    joined: list[StateBatch] = []
    for batch in sorted(pieces):
        if batch.last_offset < start_offset:
            continue
        batch = batch._replace(first_offset=max(batch.first_offset, start_offset))
        if joined and _continues(joined[-1], batch):
            joined[-1] = joined[-1]._replace(last_offset=batch.last_offset)
        else:
            joined.append(batch)
    return tuple(joined)


def combined(batches: Iterable[StateBatch]) -> tuple[StateBatch, ...]:
    """Sorted; where batches overlap, the later one wins."""
    found = tuple(batches)
    ordered = sorted(found)
    if all(left.last_offset < right.first_offset for left, right in pairwise(ordered)):
        return tuple(ordered)
    laid: tuple[StateBatch, ...] = ()
    for batch in found:
        laid = overlay(laid, (batch,), 0)
    return laid


def _uncovered(batch: StateBatch, covering: Iterable[StateBatch]) -> Iterable[StateBatch]:
    first = batch.first_offset
    for cover in covering:
        if cover.last_offset < first:
            continue
        if cover.first_offset > batch.last_offset:
            break
        if cover.first_offset > first:
            yield batch._replace(first_offset=first, last_offset=cover.first_offset - 1)
        first = cover.last_offset + 1
    if first <= batch.last_offset:
        yield batch._replace(first_offset=first)


def _continues(batch: StateBatch, following: StateBatch) -> bool:
    return batch.last_offset + 1 == following.first_offset and batch[2:] == following[2:]
