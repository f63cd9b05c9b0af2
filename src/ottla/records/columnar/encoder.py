"""Builds record batches from Arrow columns, the way back of `decoder`.

All rows are encoded at once, whatever batches they end in: the numbers by numpy, and what stands
between them is joined by Arrow, row by row, into the very bytes of the record section.
"""

from collections.abc import Iterator
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

BATCH_BYTES_MAX = 1024 * 1024  # A little below what a topic accepts unless it says otherwise.

# Of a record beside key, value and headers: five lengths and counts, two deltas, the attributes.
_NUMBERS_BYTES_MAX = 5 * 5 + 10 + 5 + 1


class Rows(NamedTuple):
    """Records to be; the arrays are of one length and may be slices."""

    timestamp: Integers  # Milliseconds.
    key: Any = None  # An Arrow array of binary or string; None when no record has one.
    value: Any = None
    headers: Any = None  # An Arrow array of lists of structs of key and value.


class EncodedBatch(NamedTuple):
    data: bytearray
    rows: int


@dataclass(frozen=True, kw_only=True)
class Writing:
    """What all batches of a producer have in common."""

    compression: int = 0
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    transactional: bool = False
    batch_bytes_max: int = BATCH_BYTES_MAX  # Before compression.


def encode_batches(
    rows: Rows, writing: Writing, base_sequence: int = NO_SEQUENCE
) -> Iterator[EncodedBatch]:
    """The rows in as few batches as the limit allows; a row above the limit is one of its own.

    Sequences go on from `base_sequence` through the batches. InvalidRecord for a header without a
    name.
    """
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
    starts = _batch_starts(size + _NUMBERS_BYTES_MAX, writing.batch_bytes_max - HEADER_SIZE)
    records = _encode_records(rows, headers, key_size, value_size, starts)
    edges = np.frombuffer(records.buffers()[1], np.int32)[: len(rows.timestamp) + 1]
    data = memoryview(records.buffers()[2])
    for first, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(size)], strict=True):
        sequence = base_sequence
        if sequence != NO_SEQUENCE:
            sequence = (base_sequence + first) & SEQUENCE_MAX
        body = data[int(edges[first]) : int(edges[stop])]
        batch = _batch(body, rows.timestamp[first:stop], writing, sequence)
        yield EncodedBatch(batch, stop - first)


def _sizes(array: Any) -> Integers:
    """Bytes of each item; -1 for null."""
    lengths: Integers = pc.binary_length(array).fill_null(-1).to_numpy().astype(np.int64)
    return lengths


def _batch_starts(sizes: Integers, limit: int) -> Integers:
    """The first row of each batch."""
    ends = np.cumsum(sizes)
    starts = [0]
    while True:
        before = int(ends[starts[-1] - 1]) if starts[-1] else 0
        stop = int(np.searchsorted(ends, before + limit, side="right"))
        stop = max(stop, starts[-1] + 1)
        if stop >= len(sizes):
            return np.array(starts, np.int64)
        starts.append(stop)


def _encode_records(
    rows: Rows,
    headers: "_Headers | None",
    key_size: Integers,
    value_size: Integers,
    starts: Integers,
) -> Any:
    """One Arrow string for each record."""
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
        # The headers of a row lie side by side, so one string holds them from first to last.
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
