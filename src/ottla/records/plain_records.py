"""Reads the records of uncompressed batches in place, at half the cost of `decoder`.

A coordinator reads every record of its log before it can serve, and most of its batches hold one
record. Numbers of one or two bytes, which nearly all are, are read without a call. What is unusual
(headers, append time, long numbers) or damaged is left to `decoder`, which says what is wrong.
"""

from ottla.records.batch import (
    APPEND_TIME_FLAG,
    COMPRESSION_MASK,
    HEADER_SIZE,
    BatchHeader,
)
from ottla.records.builder import Record
from ottla.records.decoder import iterate_records

_UNUSUAL = COMPRESSION_MASK | APPEND_TIME_FLAG


def read_records(content: bytes, position: int, header: BatchHeader) -> list[Record]:
    """All records of the whole batch at the position, whose header this is."""
    if not header.attributes & _UNUSUAL:
        try:
            records = _read_plain(content, position, header)
        except IndexError:
            records = None
        if records is not None:
            return records
    return list(iterate_records(content, position))


def _read_plain(content: bytes, position: int, header: BatchHeader) -> list[Record] | None:
    base_offset = header.base_offset
    base_timestamp = header.base_timestamp
    stop = position + header.size
    position += HEADER_SIZE
    records = []
    for _ in range(header.records_count):
        size = content[position]
        position += 1
        if size >= 0x80:
            size += (content[position] << 7) - 0x80
            position += 1
        end = position + (size >> 1)
        timestamp_delta = content[position + 1]
        offset_delta = content[position + 2]
        key_size = content[position + 3]
        if (timestamp_delta | offset_delta | key_size) & 0x81 or size & 0x4001:
            return None  # Long or negative numbers.
        key_end = position + 4 + (key_size >> 1)
        value_size = content[key_end]
        value_start = key_end + 1
        if value_size >= 0x80:
            value_size += (content[value_start] << 7) - 0x80
            value_start += 1
        value: bytes | None = None
        value_end = value_start
        if value_size != 1:  # That is -1, for null.
            if value_size & 0x4001:
                return None
            value_end += value_size >> 1
            value = content[value_start:value_end]
        if value_end != end - 1 or content[value_end] or end > stop:
            return None
        records.append(
            Record(
                base_offset + (offset_delta >> 1),
                base_timestamp + (timestamp_delta >> 1),
                content[position + 4 : key_end],
                value,
            )
        )
        position = end
    return records if position == stop else None
