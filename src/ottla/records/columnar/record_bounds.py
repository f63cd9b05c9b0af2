"""Finds where each record of many batches begins and ends.

A record has its length but nothing tells where the next one begins, so a batch is walked from its
start. Many batches are walked side by side, one record in each at a time; few are walked one after
the other.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ottla.records.batch import Buffer
from ottla.records.columnar.varints import Integers, Unusual

LOCKSTEP_BATCHES_MIN = 24

_SIZE_BITS_MAX = 35  # In a length, which is an int32.

_ONE = np.uint32(1)
_STOPS = np.uint32(0x80808080)


class Bodies(NamedTuple):
    """The record sections of several batches in one buffer, in buffer order."""

    start: Integers
    end: Integers
    records: Integers  # The record count.


class RecordBounds(NamedTuple):
    """Bounds of records, in buffer order."""

    start: Integers  # After the length.
    end: Integers


def find_record_bounds(buffer: Buffer, bodies: Bodies) -> RecordBounds:
    """Every record of every body; Unusual unless each body ends where its last record does."""
    if len(bodies.records) >= LOCKSTEP_BATCHES_MIN:
        return _walk_side_by_side(buffer, bodies)
    view = memoryview(buffer)
    walks = []
    for start, end, count in zip(*(column.tolist() for column in bodies), strict=True):
        bounds, size = walk(bytes(view[start:end]), 0, count)
        if size != end - start:
            raise Unusual
        walks.append([column + start for column in bounds])
    return RecordBounds(*(np.concatenate(columns) for columns in zip(*walks, strict=True)))


def walk(body: bytes, position: int, count: int) -> tuple[RecordBounds, int]:
    """The next `count` records of one body, and the position after them."""
    starts = []
    ends = []
    try:
        for _ in range(count):
            size = body[position]
            position += 1
            shift = 7
            while size >> shift:  # The last byte that was read says: there is another.
                size += (body[position] - 1) << shift
                position += 1
                shift += 7
                if shift > _SIZE_BITS_MAX:
                    raise Unusual
            if size & 1:
                raise Unusual  # A negative length.
            starts.append(position)
            position += size >> 1
            ends.append(position)
    except IndexError:
        raise Unusual from None
    if position > len(body):
        raise Unusual
    return RecordBounds(np.array(starts, np.int64), np.array(ends, np.int64)), position


def _walk_side_by_side(buffer: Buffer, bodies: Bodies) -> RecordBounds:
    words: npt.NDArray[np.uint32] = np.ndarray((len(buffer) - 3,), "<u4", buffer, strides=(1,))
    order = np.argsort(-bodies.records, kind="stable")  # Bodies that are still walked come first.
    positions = bodies.start[order]
    counts = bodies.records[order]
    rows = (np.cumsum(bodies.records) - bodies.records)[order]
    starts = np.empty(int(counts.sum()), np.int64)
    ends = np.empty_like(starts)
    active = np.searchsorted(-counts, -np.arange(counts[0]), side="left").tolist()
    try:
        for step, walked in enumerate(active):
            sizes, after = _read_sizes(words[positions[:walked]], positions[:walked])
            row = rows[:walked] + step
            starts[row] = after
            after += sizes
            ends[row] = after
            positions[:walked] = after
    except IndexError:
        raise Unusual from None
    if (positions != bodies.end[order]).any():
        raise Unusual
    return RecordBounds(starts, ends)


def _read_sizes(
    words: npt.NDArray[np.uint32], positions: Integers
) -> tuple[npt.NDArray[np.uint32], Integers]:
    """Lengths of up to four bytes, and the positions after them."""
    stops = ~words & _STOPS
    used = stops ^ (stops - _ONE)
    sizes = words & used
    sizes = (
        (sizes & np.uint32(0x7F))
        | (sizes >> _ONE) & np.uint32(0x3F80)
        | (sizes >> np.uint32(2)) & np.uint32(0x1FC000)
        | (sizes >> np.uint32(3)) & np.uint32(0xFE00000)
    )
    if (sizes & _ONE).any() or not stops.all():
        raise Unusual
    return sizes >> _ONE, positions + (np.bitwise_count(used) >> np.uint8(3))
