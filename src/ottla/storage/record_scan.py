"""Scans the records of a batch for what compaction must know, and decodes nothing else.

A record that stays is copied byte for byte: its offset and timestamp are relative to those of the
batch, which do not change.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ottla.records.batch import (
    APPEND_TIME_FLAG,
    HEADER,
    HEADER_SIZE,
    LENGTH_END,
    BatchHeader,
    write_checksum,
)
from ottla.records.compression import DECOMPRESSED_BYTES_MAX, compress
from ottla.records.decoder import decode_body, read_varint
from ottla.records.errors import CorruptBatch

_NULL_SIZE = 1  # The encoding of -1.


class ScannedRecord(NamedTuple):
    start: int  # In the body of the batch.
    end: int
    timestamp_delta: int
    offset: int
    key: bytes | None
    has_value: bool


def body_of(batch: memoryview, header: BatchHeader) -> bytes:
    """The bytes of all records, decompressed."""
    return decode_body(batch, 0, header, DECOMPRESSED_BYTES_MAX)


def scan_records(body: bytes, header: BatchHeader) -> Iterator[ScannedRecord]:
    """Raises CorruptBatch for bytes that are not records."""
    base_offset = header.base_offset
    body_size = len(body)
    new = tuple.__new__
    position = 0
    try:
        for _ in range(header.records_count):
            start = position
            size, position = read_varint(body, position)
            end = position + size
            if not position < end <= body_size:
                raise CorruptBatch(f"a record of {size} bytes at position {start}")
            timestamp_delta, position = read_varint(body, position + 1)
            offset_delta, position = read_varint(body, position)
            key_size, position = read_varint(body, position)
            key = None
            if key_size >= 0:
                key = body[position : position + key_size]
                position += key_size
            if position >= end:
                raise CorruptBatch(f"a key of {key_size} bytes in a record of {size}")
            has_value = body[position] != _NULL_SIZE
            offset = base_offset + offset_delta
            yield new(ScannedRecord, (start, end, timestamp_delta, offset, key, has_value))
            position = end
    except IndexError:
        raise CorruptBatch("the batch ends inside a record") from None


def copy_records(header: BatchHeader, body: bytes, records: list[ScannedRecord]) -> bytearray:
    """The batch with only these records."""
    kept = b"".join([body[record.start : record.end] for record in records])
    if header.compression:
        kept = compress(kept, header.compression)
    max_timestamp = header.max_timestamp
    if not header.attributes & APPEND_TIME_FLAG:
        max_timestamp = header.base_timestamp + max(record.timestamp_delta for record in records)
    batch = bytearray(HEADER_SIZE + len(kept))
    HEADER.pack_into(
        batch,
        0,
        *header._replace(
            batch_length=len(batch) - LENGTH_END,
            max_timestamp=max_timestamp,
            records_count=len(records),
        ),
    )
    batch[HEADER_SIZE:] = kept
    write_checksum(batch, 0, len(batch))
    return batch
