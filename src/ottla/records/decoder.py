"""Reads the records of a batch, and the markers of control batches.

Any bytes produce either records or a RecordError. The checksum is not verified: `validation` and
recovery do that once, on entry.
"""

import enum
import struct
from collections.abc import Iterator
from typing import NamedTuple

from ottla.records.batch import (
    APPEND_TIME_FLAG,
    HEADER_SIZE,
    LENGTH_END,
    MAGIC,
    BatchHeader,
    Buffer,
    read_header,
)
from ottla.records.builder import Headers, Record, build_batch
from ottla.records.compression import DECOMPRESSED_BYTES_MAX, decompress
from ottla.records.errors import CorruptBatch, InvalidRecord, UnsupportedFormat

VARINT_BYTES_MAX = 10


_ALL = -(1 << 63)  # Includes offsets that only an invalid batch has.


def iterate_records(
    batch: Buffer,
    position: int = 0,
    *,
    from_offset: int = _ALL,
    limit: int = DECOMPRESSED_BYTES_MAX,
) -> Iterator[Record]:
    """The records of the batch at the position, with their offsets and timestamps.

    Those before `from_offset` are skipped, without decoding where offsets have no gaps.
    """
    header = _read_checked_header(batch, position)
    body = decode_body(batch, position, header, limit)
    base_offset = header.base_offset
    base_timestamp = header.base_timestamp
    append_time = header.attributes & APPEND_TIME_FLAG
    position = passed = 0
    try:
        if from_offset > base_offset and header.records_count == header.last_offset_delta + 1:
            passed, position = _pass_over(body, header, from_offset - base_offset)
        for _ in range(header.records_count - passed):
            size, position = read_varint(body, position)
            end = position + size
            if size < 0 or end > len(body):
                raise CorruptBatch(f"a record of {size} bytes at position {position}")
            timestamp_delta, position = read_varint(body, position + 1)
            offset_delta, position = read_varint(body, position)
            key, position = _read_bytes(body, position, end)
            value, position = _read_bytes(body, position, end)
            headers, position = _read_headers(body, position, end)
            if position != end:
                raise CorruptBatch(f"a record ends at position {position}, not at {end}")
            if base_offset + offset_delta < from_offset:
                continue
            timestamp = header.max_timestamp if append_time else base_timestamp + timestamp_delta
            yield Record(base_offset + offset_delta, timestamp, key, value, headers)
    except IndexError:
        raise CorruptBatch("the batch ends inside a record") from None
    if position != len(body):
        raise CorruptBatch(f"{len(body) - position} bytes after the last record")


def _pass_over(body: bytes, header: BatchHeader, count: int) -> tuple[int, int]:
    """How many records were skipped, and the position after them.

    None if the offset of the next one shows that the header is wrong about gaps.
    """
    count = min(count, header.records_count)
    position = 0
    for _ in range(count):
        size, position = read_varint(body, position)
        position += size
        if size < 0 or position > len(body):
            raise CorruptBatch(f"a record of {size} bytes ends at position {position}")
    if count < header.records_count:
        _, inside = read_varint(body, position)
        _, inside = read_varint(body, inside + 1)
        if read_varint(body, inside)[0] != count:
            return 0, 0
    return count, position


def decode_body(batch: Buffer, position: int, header: BatchHeader, limit: int) -> bytes:
    """The bytes of all records of a batch, decompressed."""
    body = memoryview(batch)[position + HEADER_SIZE : position + header.size]
    if header.records_count == 0:
        return b""  # A batch emptied by compaction keeps its codec but has no compressed bytes.
    return bytes(decompress(body, header.compression, limit))


def _read_checked_header(batch: Buffer, position: int) -> BatchHeader:
    if position < 0 or len(batch) - position < HEADER_SIZE:
        raise CorruptBatch("fewer bytes than a batch header")
    header = read_header(batch, position)
    if header.magic != MAGIC:
        raise UnsupportedFormat(f"message format {header.magic}")
    if header.batch_length < HEADER_SIZE - LENGTH_END or header.size > len(batch) - position:
        raise CorruptBatch(f"a batch of {header.size} bytes in {len(batch) - position}")
    if header.records_count < 0:
        raise CorruptBatch(f"a batch of {header.records_count} records")
    return header


def read_varint(body: bytes, position: int) -> tuple[int, int]:
    """A zigzag number, and the position after it."""
    byte = body[position]
    position += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position
    unsigned = byte & 0x7F
    byte = body[position]
    position += 1
    unsigned |= (byte & 0x7F) << 7
    if byte < 0x80:
        return (unsigned >> 1) ^ -(unsigned & 1), position
    for shift in range(14, 7 * VARINT_BYTES_MAX, 7):
        byte = body[position]
        position += 1
        unsigned |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (unsigned >> 1) ^ -(unsigned & 1), position
    raise CorruptBatch(f"a number of more than {VARINT_BYTES_MAX} bytes")


def _read_bytes(body: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    size, position = read_varint(body, position)
    if size < 0:
        if size != -1:
            raise CorruptBatch(f"a field of {size} bytes at position {position}")
        return None, position
    stop = position + size
    if stop > end:
        raise CorruptBatch(f"a field of {size} bytes reaches past its record")
    return body[position:stop], stop


def _read_headers(body: bytes, position: int, end: int) -> tuple[Headers, int]:
    count, position = read_varint(body, position)
    if count == 0:
        return (), position
    if not 0 < count <= end - position:
        raise CorruptBatch(f"a record with {count} headers")
    headers = []
    for _ in range(count):
        name, position = _read_bytes(body, position, end)
        if name is None:
            raise CorruptBatch("a record header without a name")
        value, position = _read_bytes(body, position, end)
        try:
            headers.append((name.decode(), value))
        except UnicodeDecodeError:
            raise CorruptBatch("the name of a record header is not UTF-8") from None
    return tuple(headers), position


class ControlType(enum.IntEnum):
    ABORT = 0
    COMMIT = 1


class Marker(NamedTuple):
    """The end of a transaction, as written to each of its partitions."""

    type: ControlType
    coordinator_epoch: int


_CONTROL_KEY = struct.Struct(">hh")  # Version, type.
_MARKER_VALUE = struct.Struct(">hi")  # Version, coordinator epoch.


def build_marker(
    marker: Marker,
    *,
    timestamp_ms: int,
    producer_id: int,
    producer_epoch: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """The control batch that ends a producer's transaction in a partition."""
    record = Record(
        timestamp=timestamp_ms,
        key=_CONTROL_KEY.pack(0, marker.type),
        value=_MARKER_VALUE.pack(0, marker.coordinator_epoch),
    )
    return build_batch(
        [record],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        leader_epoch=leader_epoch,
        transactional=True,
        control=True,
    )


def control_type(record: Record) -> int:
    """The type of any control record; those of Raft (leader change, snapshots) are above 1."""
    if record.key is None or len(record.key) < _CONTROL_KEY.size:
        raise InvalidRecord("a control record without a type")
    version, number = _CONTROL_KEY.unpack_from(record.key)
    if version < 0:
        raise InvalidRecord(f"a control record of version {version}")
    return int(number)


def parse_marker(record: Record) -> Marker | None:
    """The marker in a control record; None for control records of other types."""
    number = control_type(record)
    if number not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    if record.value is None or len(record.value) < _MARKER_VALUE.size:
        raise InvalidRecord("a transaction marker without a coordinator epoch")
    _, coordinator_epoch = _MARKER_VALUE.unpack_from(record.value)
    return Marker(ControlType(number), coordinator_epoch)
