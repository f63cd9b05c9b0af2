"""Reads the records of many batches into Arrow columns, without touching a value.

Batches are combined until a chunk is full, because numpy's cost is per call and a batch from a
producer with default settings has only some dozen records. Anything unusual or damaged is left to
the single-record decoder, which reads it or reports what is wrong.

    1. find where each record begins                      `record_bounds`
    2. read the numbers of all records side by side       `varints`
    3. give Arrow the positions of keys and values: it copies them together    `binary`
"""

from collections.abc import Iterator, Sequence, Set
from typing import Any

import numpy as np
import pyarrow as pa

from ottla.records.batch import APPEND_TIME_FLAG, COMPRESSION_MASK, HEADER_SIZE, Buffer
from ottla.records.builder import Record
from ottla.records.columnar.binary import binary_array, fixed_array, header_arrays
from ottla.records.columnar.columns import TYPES, Chunk, Column
from ottla.records.columnar.record_bounds import Bodies, RecordBounds, find_record_bounds, walk
from ottla.records.columnar.varints import Integers, Unusual, Words
from ottla.records.compression import DECOMPRESSED_BYTES_MAX
from ottla.records.decoder import decode_body, iterate_records
from ottla.records.isolation import FoundBatch

ROWS_MAX = 32_768
BYTES_MAX = 4 * 1024 * 1024

_MICROSECONDS = 1000
_MILLISECONDS_MAX = (2**63 - 1) // _MICROSECONDS
_AFTER_KEY = frozenset({Column.VALUE, Column.HEADERS})


def decode_batches(
    buffer: Buffer,
    batches: Sequence[FoundBatch],
    columns: Set[Column],
    start_offset: int,
    end_offset: int,
) -> Iterator[Chunk]:
    """The records in `[start_offset, end_offset)`; RecordError for an invalid batch.

    The chunks keep nothing of the buffer, which must not change until the last one is taken.
    """
    decode = _Decode(columns, start_offset, end_offset)
    together: list[FoundBatch] = []
    rows = size = 0
    for batch in batches:
        count = batch.header.records_count
        if together and (rows + count > ROWS_MAX or size + batch.header.size > BYTES_MAX):
            yield from decode.together(buffer, together)
            together, rows, size = [], 0, 0
        if count > ROWS_MAX:
            yield from decode.large(buffer, batch)
            continue
        together.append(batch)
        rows += count
        size += batch.header.size
    if together:
        yield from decode.together(buffer, together)


class _Decode:
    def __init__(self, columns: Set[Column], start_offset: int, end_offset: int) -> None:
        self._columns = columns
        self._start_offset = start_offset
        self._end_offset = end_offset

    def together(self, buffer: Buffer, batches: list[FoundBatch]) -> Iterator[Chunk]:
        """Chunks of whole batches: one, unless decompression makes them large."""
        if not any(batch.header.attributes & COMPRESSION_MASK for batch in batches):
            yield from self._chunk(buffer, batches, buffer, _bodies_in_place(batches))
            return
        parts: list[bytes] = []
        size = first = 0
        for index, batch in enumerate(batches):
            if size > BYTES_MAX:
                yield from self._joined(buffer, batches[first:index], parts)
                parts, size, first = [], 0, index
            parts.append(decode_body(buffer, *batch, DECOMPRESSED_BYTES_MAX))
            size += len(parts[-1])
        yield from self._joined(buffer, batches[first:], parts)

    def large(self, buffer: Buffer, batch: FoundBatch) -> Iterator[Chunk]:
        """The chunks of a batch larger than one chunk."""
        body = decode_body(buffer, *batch, DECOMPRESSED_BYTES_MAX)
        words = Words(body)
        left = batch.header.records_count
        position = 0
        try:
            while left:
                count = min(left, ROWS_MAX)
                bounds, position = walk(body, position, count)
                chunk = self._columns_of(body, words, [batch], np.array([count]), bounds)
                left -= count
                if chunk.rows:
                    yield chunk
            if position != len(body):
                raise Unusual
        except Unusual:
            # What was valid so far has been yielded; the rest raises the error.
            yield from self._slowly(buffer, [batch], skip=batch.header.records_count - left)

    def _joined(
        self, buffer: Buffer, batches: list[FoundBatch], parts: list[bytes]
    ) -> Iterator[Chunk]:
        sizes = np.array([len(part) for part in parts], np.int64)
        ends = np.cumsum(sizes)
        counts = np.array([batch.header.records_count for batch in batches], np.int64)
        yield from self._chunk(buffer, batches, b"".join(parts), Bodies(ends - sizes, ends, counts))

    def _chunk(
        self, buffer: Buffer, batches: list[FoundBatch], data: Buffer, bodies: Bodies
    ) -> Iterator[Chunk]:
        try:
            bounds = find_record_bounds(data, bodies)
            chunk = self._columns_of(data, Words(data), batches, bodies.records, bounds)
        except Unusual:
            yield from self._slowly(buffer, batches)
        else:
            if chunk.rows:
                yield chunk

    def _columns_of(
        self,
        data: Buffer,
        words: Words,
        batches: list[FoundBatch],
        counts: Integers,
        bounds: RecordBounds,
    ) -> Chunk:
        """`counts` are the records of each batch in `bounds`, in the same order."""
        fields = np.array([_batch_fields(batch) for batch in batches], np.int64)
        base_offset, base_timestamp, append_timestamp, append_time = np.repeat(
            fields, counts, axis=0
        ).T
        timestamp_delta, position = words.varints(bounds.start + 1)
        offset_delta, position = words.varints(position)
        offset = base_offset + offset_delta
        timestamp = np.where(append_time, append_timestamp, base_timestamp + timestamp_delta)
        found = {
            Column.OFFSET: offset,
            Column.TIMESTAMP: _microseconds(timestamp),
            Column.TIMESTAMP_TYPE: append_time.astype(np.int32),
        }
        kept = self._rows_in_range(offset)
        if kept is not None:
            found = {column: values[kept] for column, values in found.items()}
            position = position[kept]
            bounds = RecordBounds(bounds.start[kept], bounds.end[kept])
        columns: dict[Column, Any] = {
            column: fixed_array(values, TYPES[column])
            for column, values in found.items()
            if column in self._columns
        }
        columns |= self._bytes_columns(data, words, position, bounds.end)
        return Chunk(len(position), columns)

    def _rows_in_range(self, offset: Integers) -> slice | None:
        """None for all rows."""
        if (offset[1:] <= offset[:-1]).any():
            raise Unusual
        if not len(offset) or (offset[0] >= self._start_offset and offset[-1] < self._end_offset):
            return None
        first, stop = np.searchsorted(offset, (self._start_offset, self._end_offset)).tolist()
        return slice(first, stop)

    def _bytes_columns(
        self, data: Buffer, words: Words, position: Integers, end: Integers
    ) -> dict[Column, Any]:
        columns: dict[Column, Any] = {}
        if not self._columns & (_AFTER_KEY | {Column.KEY}):
            return columns
        raw = pa.py_buffer(data)
        key_size, key_start = words.varints(position)
        key_end = _field_end(key_start, key_size, end)
        if Column.KEY in self._columns:
            columns[Column.KEY] = binary_array(raw, key_start, key_end, key_size < 0)
        if not self._columns & _AFTER_KEY:
            return columns
        value_size, value_start = words.varints(key_end)
        value_end = _field_end(value_start, value_size, end)
        if Column.VALUE in self._columns:
            columns[Column.VALUE] = binary_array(raw, value_start, value_end, value_size < 0)
        if Column.HEADERS in self._columns:
            columns[Column.HEADERS] = header_arrays(raw, words, value_end, end)
        return columns

    def _slowly(self, buffer: Buffer, batches: list[FoundBatch], skip: int = 0) -> Iterator[Chunk]:
        for position, header in batches:
            time_type = 1 if header.attributes & APPEND_TIME_FLAG else 0
            records: list[Record] = []
            for index, record in enumerate(iterate_records(buffer, position)):
                if index >= skip and self._start_offset <= record.offset < self._end_offset:
                    records.append(record)
                if len(records) == ROWS_MAX:
                    yield self._chunk_of_records(records, time_type)
                    records = []
            if records:
                yield self._chunk_of_records(records, time_type)

    def _chunk_of_records(self, records: list[Record], time_type: int) -> Chunk:
        values = {
            Column.KEY: lambda record: record.key,
            Column.VALUE: lambda record: record.value,
            Column.OFFSET: lambda record: record.offset,
            Column.TIMESTAMP: lambda record: int(_microseconds(record.timestamp)),
            Column.TIMESTAMP_TYPE: lambda _: time_type,
            Column.HEADERS: _header_values,
        }
        columns = {
            column: pa.array([values[column](record) for record in records], TYPES[column])
            for column in self._columns
        }
        return Chunk(len(records), columns)


def _bodies_in_place(batches: list[FoundBatch]) -> Bodies:
    bounds = np.array(
        [(batch.position, batch.header.size, batch.header.records_count) for batch in batches],
        np.int64,
    )
    position, size, count = bounds.T
    return Bodies(position + HEADER_SIZE, position + size, np.ascontiguousarray(count))


def _batch_fields(batch: FoundBatch) -> tuple[int, int, int, int]:
    header = batch.header
    append_time = 1 if header.attributes & APPEND_TIME_FLAG else 0
    return header.base_offset, header.base_timestamp, header.max_timestamp, append_time


def _microseconds(milliseconds: Any) -> Any:
    """A time out of range for microseconds becomes the last one in range."""
    return np.clip(milliseconds, -_MILLISECONDS_MAX, _MILLISECONDS_MAX) * _MICROSECONDS


def _field_end(start: Integers, size: Integers, end: Integers) -> Integers:
    """Where a nullable field ends; another number must fit after it in its record."""
    stop = start + np.maximum(size, 0)
    if (size < -1).any() or (stop >= end).any():
        raise Unusual
    return stop


def _header_values(record: Record) -> list[dict[str, Any]] | None:
    if not record.headers:
        return None
    return [{"key": name, "value": value} for name, value in record.headers]
