"""The batches of coordinators: uncompressed, without headers, most of them with one record.

They are built and read at a third of the cost of `builder` and `decoder`, because each commit makes
one, and a coordinator reads every record of its log before it can serve. Numbers of one or two
bytes, which nearly all are, are read inline. Anything unusual (transactions, headers, append time,
long numbers) or damaged is left to `decoder`, which reports what is wrong.
"""

import struct
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from ottla.records.batch import (
    APPEND_TIME_FLAG,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    CRC_START,
    HEADER_SIZE,
    LENGTH_END,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_FLAG,
)
from ottla.records.builder import Record, sized, varint
from ottla.records.crc import crc32c

_UNUSUAL = COMPRESSION_MASK | APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG
_LENGTH_MIN = HEADER_SIZE - LENGTH_END

_HEADER_FORMAT = ">qi4xb4xhiq22xi"  # What matters of the header.
_unpack_header = struct.Struct(_HEADER_FORMAT).unpack_from
_unpack_length = struct.Struct(">8xi").unpack_from
_ONE_BYTE_MAX = 63  # The largest size that fits in one byte.
_KEY_SIZE = HEADER_SIZE + 4  # Its position, after a record size of one byte.
_SHORT_LENGTH_MAX = HEADER_SIZE - LENGTH_END + 1 + _ONE_BYTE_MAX
_SINGLE_SIZE_MIN = HEADER_SIZE + 7
_pack_start = struct.Struct(">qiibI").pack  # The header up to its checksum, and the rest.
_pack_checked = struct.Struct(">hiqqqhii").pack
_new_tuple = tuple.__new__


def build_plain_batch(
    pairs: Iterable[tuple[bytes | None, bytes | None]],
    timestamp_ms: int,
    *,
    attributes: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
) -> bytearray:
    """A batch of records with these keys and values, all with the same timestamp."""
    parts = [b""]
    count = 0
    for key, value in pairs:
        # No attributes, no difference to the batch's timestamp; no headers.
        record = b"\x00\x00" + varint(count) + sized(key) + sized(value) + b"\x00"
        parts += (varint(len(record)), record)
        count += 1
    parts[0] = _pack_checked(
        attributes,
        count - 1,
        timestamp_ms,
        timestamp_ms,
        producer_id,
        producer_epoch,
        NO_SEQUENCE,
        count,
    )
    checked = b"".join(parts)
    length = len(checked) + CRC_START - LENGTH_END
    return bytearray(_pack_start(0, length, NO_LEADER_EPOCH, MAGIC, crc32c(checked)) + checked)


def read_plain_run(content: bytes, start: int, from_offset: int, records: list[Record]) -> int:
    """Append the records of the plain batches from `start` on; returns where they end.

    That is the end of the content, or a batch that is incomplete or needs the decoder. Batches that
    end before `from_offset` are skipped.
    """
    while True:
        start = _read_singles(content, start, from_offset, records)
        end = _read_any(content, start, from_offset, records)
        if end == start:
            return start
        start = end


class _Layout(NamedTuple):
    """Of a batch with one record and a value: its sizes determine all positions."""

    batch_size: int
    unpack: Callable[[bytes, int], tuple[Any, ...]]
    before_key: bytes
    before_value: bytes


@lru_cache(maxsize=4096)
def _layout(length: int, key_byte: int) -> _Layout | None:
    """From the length in the header and the byte with the key size; None for unusual ones."""
    record_size = length + LENGTH_END - HEADER_SIZE
    record_size -= 1 if record_size <= _ONE_BYTE_MAX + 1 else 2
    key_size = key_byte >> 1
    value_size = record_size - 4 - key_size - 1
    value_size -= 1 if value_size <= _ONE_BYTE_MAX + 1 else 2
    before_key = varint(record_size) + b"\x00\x00\x00" + bytes((key_byte,))
    before_value = varint(value_size)
    batch_size = length + LENGTH_END
    sizes = (HEADER_SIZE, len(before_key), key_size, len(before_value), value_size, 1)
    if key_byte & 0x81 or value_size < 0 or sum(sizes) != batch_size:
        return None
    _, before_key_size, _, before_value_size, _, _ = sizes
    fields = f"{before_key_size}s{key_size}s{before_value_size}s{value_size}sB"
    unpack = struct.Struct(_HEADER_FORMAT + fields).unpack_from
    return _Layout(batch_size, unpack, before_key, before_value)


def _read_singles(content: bytes, start: int, from_offset: int, records: list[Record]) -> int:
    """Append consecutive single-record batches; returns where they end."""
    content_size = len(content)
    while start + _SINGLE_SIZE_MIN <= content_size:
        (length,) = _unpack_length(content, start)
        key_byte = content[start + (_KEY_SIZE if length <= _SHORT_LENGTH_MAX else _KEY_SIZE + 1)]
        layout = _layout(length, key_byte)
        if layout is None or start + layout[0] > content_size:
            break
        batch_size, unpack, before_key, before_value = layout
        base_offset, _, magic, attributes, _, timestamp, count, head, key, middle, value, end = (
            unpack(content, start)
        )
        if (
            count != 1
            or head != before_key
            or middle != before_value
            or end
            or attributes & _UNUSUAL
            or magic != MAGIC
            or base_offset < from_offset
        ):
            break
        records.append(_new_tuple(Record, (base_offset, timestamp, key, value, ())))
        start += batch_size
    return start


def _read_any(content: bytes, start: int, from_offset: int, records: list[Record]) -> int:
    """Append the records of one batch and return where it ends; `start` if it is not plain."""
    if start + HEADER_SIZE > len(content):
        return start
    (
        base_offset,
        length,
        magic,
        attributes,
        last_offset_delta,
        base_timestamp,
        count,
    ) = _unpack_header(content, start)
    stop: int = start + LENGTH_END + length
    if attributes & _UNUSUAL or magic != MAGIC or length < _LENGTH_MIN or stop > len(content):
        return start
    if base_offset + last_offset_delta >= from_offset:
        batch = content[start + HEADER_SIZE : stop]
        read = _read_batch(batch, count, base_offset, base_timestamp)
        if read is None:
            return start
        records += read
    return stop


def _read_batch(
    body: bytes, count: int, base_offset: int, base_timestamp: int
) -> list[Record] | None:
    """None for what the decoder must handle."""
    records: list[Record] = []
    position = 0
    try:
        for _ in range(count):
            size = body[position]
            position += 1
            if size >= 0x80:
                size += (body[position] << 7) - 0x80
                position += 1
            end = position + (size >> 1)
            timestamp_delta = body[position + 1]
            offset_delta = body[position + 2]
            key_size = body[position + 3]
            if (timestamp_delta | offset_delta | key_size) & 0x81 or size & 0x4001:
                return None  # Long or negative numbers.
            key_end = position + 4 + (key_size >> 1)
            value_size = body[key_end]
            value_start = key_end + 1
            if value_size >= 0x80:
                value_size += (body[value_start] << 7) - 0x80
                value_start += 1
            value: bytes | None = None
            value_end = value_start
            if value_size != 1:  # 1 stands for -1, which is null.
                if value_size & 0x4001:
                    return None
                value_end += value_size >> 1
                value = body[value_start:value_end]
            if value_end != end - 1 or body[value_end]:
                return None
            key = body[position + 4 : key_end]
            offset = base_offset + (offset_delta >> 1)
            timestamp = base_timestamp + (timestamp_delta >> 1)
            records.append(_new_tuple(Record, (offset, timestamp, key, value, ())))
            position = end
    except IndexError:
        return None
    return records if position == len(body) else None
