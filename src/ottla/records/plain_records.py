"""The batches of coordinators: uncompressed, without headers, most of them with one record.

They are built and read at a third of what `builder` and `decoder` cost, for each commit makes one,
and a coordinator reads every record of its log before it can serve. Numbers of one or two bytes,
which nearly all are, are read without a call. What is unusual (transactions, headers, append time,
long numbers) or damaged is left to `decoder`, which says what is wrong.
"""

import struct
from collections.abc import Iterable

from crc32c import crc32c

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

_UNUSUAL = COMPRESSION_MASK | APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG
_LENGTH_MIN = HEADER_SIZE - LENGTH_END

_unpack_header = struct.Struct(">qi4xb4xhiq22xi").unpack_from  # What matters of the header.
_pack_start = struct.Struct(">qiibI").pack  # The header up to its checksum, and what that covers.
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
    """A batch of records with these keys and values, all of the same time."""
    parts = [b""]
    count = 0
    for key, value in pairs:
        # No attributes, no difference to the batch's time; no headers.
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
    """Adds the records of the plain batches from `start` on; returns where they end.

    There the content ends, or a batch begins that is not whole or needs the decoder. Batches that
    end before `from_offset` are left out.
    """
    content_size = len(content)
    while start + HEADER_SIZE <= content_size:
        (
            base_offset,
            length,
            magic,
            attributes,
            last_offset_delta,
            base_timestamp,
            count,
        ) = _unpack_header(content, start)
        stop = start + LENGTH_END + length
        if attributes & _UNUSUAL or magic != MAGIC or length < _LENGTH_MIN or stop > content_size:
            break
        if base_offset + last_offset_delta >= from_offset:
            batch = content[start + HEADER_SIZE : stop]
            read = _read_batch(batch, count, base_offset, base_timestamp)
            if read is None:
                break
            records += read
        start = stop
    return start


def _read_batch(
    body: bytes, count: int, base_offset: int, base_timestamp: int
) -> list[Record] | None:
    """None for what the decoder has to look at."""
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
            if value_size != 1:  # That is -1, for null.
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
