"""Builds record batches: the broker's own, for compaction and for clients."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.records.batch import (
    APPEND_TIME_FLAG,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    HEADER,
    HEADER_SIZE,
    LENGTH_END,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    TimestampType,
    write_checksum,
)
from ottla.records.compression import compress

NO_OFFSET = -1

Headers = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple):
    offset: int = NO_OFFSET  # NO_OFFSET when building: the offset after the previous record's.
    timestamp: int = NO_TIMESTAMP
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()


def build_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    compression: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    leader_epoch: int = NO_LEADER_EPOCH,
    transactional: bool = False,
    control: bool = False,
    timestamp_type: TimestampType = TimestampType.CREATE,
    max_timestamp: int | None = None,
    last_offset_delta: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytearray:
    """Build a complete batch, with its checksum.

    Offsets may have gaps but must increase, from `base_offset` on. Compaction keeps the offset
    range of a batch that lost records with `last_offset_delta`, which also allows an empty batch.
    `max_timestamp` defaults to that of the records.
    """
    assert records or last_offset_delta is not None, "an empty batch needs its last offset delta"
    base_timestamp = _base_timestamp(records, max_timestamp, delete_horizon_ms)
    body, last_delta = _encode_records(records, base_offset, base_timestamp)
    if compression and records:
        body = compress(bytes(body), compression)
    if last_offset_delta is not None:
        assert last_offset_delta >= last_delta, "the records reach past the last offset delta"
        last_delta = last_offset_delta
    if max_timestamp is None:
        max_timestamp = max((record.timestamp for record in records), default=NO_TIMESTAMP)
    batch = bytearray(HEADER_SIZE + len(body))
    HEADER.pack_into(
        batch,
        0,
        base_offset,
        len(batch) - LENGTH_END,
        leader_epoch,
        MAGIC,
        0,
        compression
        | (APPEND_TIME_FLAG if timestamp_type is TimestampType.APPEND else 0)
        | (TRANSACTIONAL_FLAG if transactional else 0)
        | (CONTROL_FLAG if control else 0)
        | (DELETE_HORIZON_FLAG if delete_horizon_ms is not None else 0),
        last_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    batch[HEADER_SIZE:] = body
    write_checksum(batch, 0, len(batch))
    return batch


def _base_timestamp(
    records: Sequence[Record], max_timestamp: int | None, delete_horizon_ms: int | None
) -> int:
    if delete_horizon_ms is not None:
        return delete_horizon_ms
    if records:
        return records[0].timestamp
    return NO_TIMESTAMP if max_timestamp is None else max_timestamp


def _encode_records(
    records: Iterable[Record], base_offset: int, base_timestamp: int
) -> tuple[bytes | bytearray, int]:
    """The bytes of all records, and the offset delta of the last one."""
    parts: list[bytes] = []
    short, count = _SHORT, _SHORT_COUNT
    delta = -1
    for offset, timestamp, key, value, headers in records:
        next_delta = delta + 1 if offset == NO_OFFSET else offset - base_offset
        assert next_delta > delta, "offsets rise, from the base offset on"
        delta = next_delta
        # A zero for the record attributes, none of which is in use.
        # Short numbers are looked up inline: a call for each is half of the cost.
        later = timestamp - base_timestamp
        head = b"\0" + (short[later] if 0 <= later < count else varint(later))
        head += short[delta] if delta < count else varint(delta)
        head += _NULL_LENGTH if key is None else sized(key)
        if value is None:
            head += _NULL_LENGTH
            value = b""
        else:
            size = len(value)
            head += short[size] if size < count else varint(size)
        tail = _encode_headers(headers) if headers else _NO_HEADERS
        size = len(head) + len(value) + len(tail)
        parts += (short[size] if size < count else varint(size), head, value, tail)
    return b"".join(parts), delta


def _encode_headers(headers: Headers) -> bytes:
    parts = [varint(len(headers))]
    for name, value in headers:
        parts += (sized(name.encode()), sized(value))
    return b"".join(parts)


def sized(data: bytes | None) -> bytes:
    """A key or a value, prefixed with its length."""
    return _NULL_LENGTH if data is None else varint(len(data)) + data


def varint(value: int) -> bytes:
    """Zigzag: small numbers of either sign are short."""
    if 0 <= value < _SHORT_COUNT:
        return _SHORT[value]
    return _encode_varint(value)


def _encode_varint(value: int) -> bytes:
    unsigned = value << 1 if value >= 0 else ~(value << 1)
    encoded = bytearray()
    while unsigned >= 0x80:
        encoded.append(unsigned & 0x7F | 0x80)
        unsigned >>= 7
    encoded.append(unsigned)
    return bytes(encoded)


_SHORT_COUNT = 2048  # Most lengths, and nearly all deltas.
_SHORT = tuple(map(_encode_varint, range(_SHORT_COUNT)))
_NULL_LENGTH = _encode_varint(-1)
_NO_HEADERS = _encode_varint(0)
