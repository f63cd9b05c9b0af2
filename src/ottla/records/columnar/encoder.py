"""Builds record batches from Arrow columns, the inverse of `decoder`.

All rows are encoded at once, whatever batches they end up in: numpy encodes the numbers, and Arrow
joins them with the values, row by row, into the bytes of the record section.
"""

import bisect
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ottla.records.batch import (
    HEADER,
    HEADER_SIZE,
    LENGTH_END,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    SEQUENCE_MAX,
    TRANSACTIONAL_FLAG,
    write_checksum,
)
from ottla.records.columnar.varints import Integers, encode_varints, varint_sizes
from ottla.records.compression import compress
from ottla.records.errors import InvalidRecord

BATCH_BYTES_MAX = 1024 * 1024  # Slightly below the default limit of a topic.

# A record besides key, value and headers: five lengths and counts, two deltas, the attributes.
_NUMBERS_BYTES_MAX = 5 * 5 + 10 + 5 + 1
_ROWS_TOGETHER = 4_096  # Of several stretches; more are faster one by one, out of the caches.


class Rows(NamedTuple):
    """The records to encode; the arrays have equal length and may be slices."""

    timestamp: Integers  # Milliseconds.
    key: Any = None  # An Arrow array of binary or string; None if no record has one.
    value: Any = None
    headers: Any = None  # An Arrow array of lists of structs of key and value.

    def part(self, start: int, stop: int) -> "Rows":
        columns = (None if each is None else each.slice(start, stop - start) for each in self[1:])
        return Rows(self.timestamp[start:stop], *columns)


class Stretch(NamedTuple):
    """Neighbouring rows, up to the next stretch; no batch reaches from one into another."""

    start: int  # The index of its first row.
    base_sequence: int = NO_SEQUENCE


class EncodedBatch(NamedTuple):
    data: bytearray
    rows: int


@dataclass(frozen=True, kw_only=True)
class Writing:
    """What all batches of a producer share."""

    compression: int = 0
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    transactional: bool = False
    batch_bytes_max: int = BATCH_BYTES_MAX  # Before compression.


def encode_batches(
    rows: Rows, writing: Writing, base_sequence: int = NO_SEQUENCE
) -> Iterator[EncodedBatch]:
    """The rows in as few batches as the limit allows; a row above the limit gets its own.

    Sequences continue from `base_sequence` through the batches. InvalidRecord for a header without
    a name.
    """
    for _, batch in encode_stretches(rows, (Stretch(0, base_sequence),), writing):
        yield batch


def encode_stretches(
    rows: Rows, stretches: Sequence[Stretch], writing: Writing
) -> Iterator[tuple[int, EncodedBatch]]:
    """The same for the rows of several partitions, at little more than the cost of one if few.

    Stretches are in the order of their rows, from row 0 on. Each batch comes with the index of its
    stretch.
    """
    count = len(rows.timestamp)
    first = 0
    while first < len(stretches):
        start = stretches[first].start
        next_ = first + 1
        while next_ < len(stretches) and _end(stretches, next_, count) - start <= _ROWS_TOGETHER:
            next_ += 1
        stop = _end(stretches, next_ - 1, count)
        together = [each._replace(start=each.start - start) for each in stretches[first:next_]]
        for index, batch in _encode_together(rows.part(start, stop), together, writing):
            yield first + index, batch
        first = next_


def _end(stretches: Sequence[Stretch], index: int, count: int) -> int:
    return stretches[index + 1].start if index + 1 < len(stretches) else count


def _encode_together(
    rows: Rows, stretches: Sequence[Stretch], writing: Writing
) -> Iterator[tuple[int, EncodedBatch]]:
    if not len(rows.timestamp):
        return
    headers = _Headers(rows.headers) if rows.headers is not None else None
    key_size, value_size = (
        np.full(len(rows.timestamp), -1, np.int64) if array is None else _sizes(array)
        for array in (rows.key, rows.value)
    )
    size = np.maximum(key_size, 0) + np.maximum(value_size, 0)
    if headers is not None:
        size += headers.sizes
    size += _NUMBERS_BYTES_MAX
    first_rows = [stretch.start for stretch in stretches]
    starts = _batch_starts(size, writing.batch_bytes_max - HEADER_SIZE, first_rows)
    records = _encode_records(rows, headers, key_size, value_size, starts)
    edges = np.frombuffer(records.buffers()[1], np.int32)[: len(rows.timestamp) + 1]
    data = memoryview(records.buffers()[2])
    for first, stop in itertools.pairwise([*starts.tolist(), len(size)]):
        index = bisect.bisect_right(first_rows, first) - 1
        stretch = stretches[index]
        sequence = stretch.base_sequence
        if sequence != NO_SEQUENCE:
            sequence = (sequence + first - stretch.start) & SEQUENCE_MAX
        body = data[int(edges[first]) : int(edges[stop])]
        batch = _batch(body, rows.timestamp[first:stop], writing, sequence)
        yield index, EncodedBatch(batch, stop - first)


def _sizes(array: Any) -> Integers:
    """Bytes of each item; -1 for null."""
    lengths: Integers = pc.binary_length(array).fill_null(-1).to_numpy().astype(np.int64)
    return lengths


def _batch_starts(sizes: Integers, limit: int, first_rows: Sequence[int]) -> Integers:
    """The first row of each batch."""
    ends = np.cumsum(sizes)
    starts = []
    for first, stretch_end in itertools.pairwise([*first_rows, len(sizes)]):
        start = first
        while start < stretch_end:
            starts.append(start)
            before = int(ends[start - 1]) if start else 0
            start = max(int(np.searchsorted(ends, before + limit, side="right")), start + 1)
    return np.array(starts, np.int64)


def _encode_records(
    rows: Rows,
    headers: "_Headers | None",
    key_size: Integers,
    value_size: Integers,
    starts: Integers,
) -> Any:
    """One Arrow string per record."""
    counts = np.diff(starts, append=len(key_size))
    timestamp_delta = rows.timestamp - np.repeat(rows.timestamp[starts], counts)
    offset_delta = np.arange(len(key_size)) - np.repeat(starts, counts)
    header_count = headers.counts if headers else np.zeros_like(key_size)
    record_size = 1 + np.maximum(key_size, 0) + np.maximum(value_size, 0)
    for numbers in (timestamp_delta, offset_delta, key_size, value_size, header_count):
        record_size += varint_sizes(numbers)
    if headers is not None:
        record_size += headers.sizes
    attributes = np.zeros_like(key_size)
    head = (record_size, attributes, timestamp_delta, offset_delta, key_size)
    parts = [encode_varints(*head), rows.key, encode_varints(value_size), rows.value]
    parts.append(encode_varints(header_count))
    if headers is not None:
        parts.append(headers.encoded)
    return _joined([part for part in parts if part is not None])


def _joined(parts: list[Any]) -> Any:
    binary = [part.cast(pa.binary()) for part in parts]
    return pc.binary_join_element_wise(*binary, b"", null_handling="replace", null_replacement=b"")


class _Headers:
    """The headers of all rows, encoded."""

    def __init__(self, lists: Any) -> None:
        counts = pc.list_value_length(lists).fill_null(0)
        self.counts: Integers = counts.to_numpy().astype(np.int64)
        names, values = lists.flatten().flatten()
        if names.null_count:
            raise InvalidRecord("a header without a name")
        numbers = encode_varints(_sizes(names)), encode_varints(_sizes(values))
        encoded = _joined([numbers[0], names, numbers[1], values])
        # The headers of a row are adjacent, so one string has all of them.
        last = np.concatenate(([0], np.cumsum(self.counts)))
        edges = np.zeros(len(last), np.int32)
        if len(encoded):
            edges = np.frombuffer(encoded.buffers()[1], np.int32)[last]
        self.sizes: Integers = np.diff(edges).astype(np.int64)
        self.encoded = pa.Array.from_buffers(
            pa.binary(), len(self.counts), [None, pa.py_buffer(edges), encoded.buffers()[2]]
        )


def _batch(
    body: memoryview, timestamps: Integers, writing: Writing, base_sequence: int
) -> bytearray:
    data = compress(bytes(body), writing.compression) if writing.compression else body
    batch = bytearray(HEADER_SIZE + len(data))
    HEADER.pack_into(
        batch,
        0,
        0,
        len(batch) - LENGTH_END,
        NO_LEADER_EPOCH,
        MAGIC,
        0,
        writing.compression | (TRANSACTIONAL_FLAG if writing.transactional else 0),
        len(timestamps) - 1,
        int(timestamps[0]),
        int(timestamps.max()),
        writing.producer_id,
        writing.producer_epoch,
        base_sequence,
        len(timestamps),
    )
    batch[HEADER_SIZE:] = data
    write_checksum(batch, 0, len(batch))
    return batch
