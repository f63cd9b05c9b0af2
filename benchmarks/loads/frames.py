"""Requests as bytes, built once and sent many times, and the few response fields that matter.

Produce 9, Fetch 12 and OffsetCommit 9 are the newest versions that name topics and not their ids,
so a frame can be built without asking the broker. Topic names stay below 127 bytes: their length is
one byte then.
"""

import os
import socket
import struct
import time

from crc32c import crc32c

CLIENT_ID = b"benchmark"
PRODUCE, PRODUCE_VERSION = 0, 9
FETCH, FETCH_VERSION = 1, 12
OFFSET_COMMIT, OFFSET_COMMIT_VERSION = 8, 9

_BATCH = struct.Struct(">qiibIhiqqqhii")
_LAST_OFFSET_DELTA_POSITION = 23
_BATCH_PREFIX = 12  # Base offset and batch length come before the counted bytes.
_CRC_END = 21


class LoadError(Exception):
    """The broker refused, or sent something unexpected."""


def connect(address: str, seconds_max: float = 120.0) -> socket.socket:
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=seconds_max)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def build_batch(record_count: int, value_size: int) -> bytes:
    """A batch of a producer that is not idempotent, so it can be sent repeatedly."""
    value = os.urandom(value_size)
    records = b"".join(_record(delta, value) for delta in range(record_count))
    now_ms = time.time_ns() // 1_000_000
    last_delta = record_count - 1
    checked = struct.pack(">hiqqqhii", 0, last_delta, now_ms, now_ms, -1, -1, -1, record_count)
    checked += records
    length = len(checked) + _CRC_END - _BATCH_PREFIX
    return struct.pack(">qiibI", 0, length, -1, 2, crc32c(checked)) + checked


def produce_frame(topic: str, partition: int, batch: bytes, acks: int) -> bytes:
    body = (
        b"\x00"  # No transactional id.
        + struct.pack(">hi", acks, 30_000)
        + b"\x02"
        + _compact_string(topic)
        + b"\x02"
        + struct.pack(">i", partition)
        + unsigned_varint(len(batch) + 1)
        + batch
        + b"\x00\x00\x00"
    )
    return frame(PRODUCE, PRODUCE_VERSION, body)


def produce_response_error_position(topic: str) -> int:
    """The position of the error code in a response for one topic with one partition."""
    return 4 + 4 + 1 + 1 + len(_compact_string(topic)) + 1 + 4


def fetch_frame(topic: str, partition: int, offset: int, size_max: int) -> bytes:
    body = (
        struct.pack(">iiiibii", -1, 500, 1, size_max, 0, 0, -1)
        + b"\x02"
        + _compact_string(topic)
        + b"\x02"
        + struct.pack(">iiqiqi", partition, -1, offset, -1, -1, size_max)
        + b"\x00\x00"
        + b"\x01"  # No forgotten topics.
        + b"\x01"  # No rack.
        + b"\x00"
    )
    return frame(FETCH, FETCH_VERSION, body)


def commit_frame(group: str, topic: str, partition: int, offset: int) -> bytes:
    """A commit of a consumer that assigns its own partitions: no member, no generation."""
    body = (
        _compact_string(group)
        + struct.pack(">i", -1)
        + b"\x01"  # No member id.
        + b"\x00"  # No group instance id.
        + b"\x02"
        + _compact_string(topic)
        + b"\x02"
        + struct.pack(">iqi", partition, offset, -1)
        + b"\x01"  # Empty metadata.
        + b"\x00\x00\x00"
    )
    return frame(OFFSET_COMMIT, OFFSET_COMMIT_VERSION, body)


def commit_response_error_position(topic: str) -> int:
    """The position of the error code in a response for one topic with one partition."""
    size, correlation, tags, throttle, count = 4, 4, 1, 4, 1
    before = size + correlation + tags + throttle + count
    return before + len(_compact_string(topic)) + count + 4


def fetched_records(response: memoryview, topic: str) -> memoryview:
    """The record bytes of a response (without its size) for one partition; raises on an error."""
    position = 4 + 1 + 4
    top_error = struct.unpack_from(">h", response, position)[0]
    position += 2 + 4 + 1 + len(_compact_string(topic)) + 1 + 4
    partition_error = struct.unpack_from(">h", response, position)[0]
    if top_error or partition_error:
        raise LoadError(f"fetch was refused with errors {top_error} and {partition_error}")
    position += 2 + 8 + 8 + 8
    aborted, position = read_unsigned_varint(response, position)
    if aborted > 1:
        raise LoadError("aborted transactions were not expected")
    position += 4
    length, position = read_unsigned_varint(response, position)
    return response[position : position + max(length - 1, 0)]


def walk_batches(records: memoryview) -> tuple[int, int, int]:
    """Next offset, bytes and records of the whole batches; the last batch may be incomplete."""
    position, next_offset, count = 0, -1, 0
    while position + _BATCH.size <= len(records):
        base_offset, length = struct.unpack_from(">qi", records, position)
        if position + _BATCH_PREFIX + length > len(records):
            break
        last_delta = struct.unpack_from(">i", records, position + _LAST_OFFSET_DELTA_POSITION)[0]
        next_offset = base_offset + last_delta + 1
        count += last_delta + 1
        position += _BATCH_PREFIX + length
    return next_offset, position, count


def frame(api_key: int, api_version: int, body: bytes, correlation_id: int = 1) -> bytes:
    """A request with a flexible header."""
    header = struct.pack(">hhih", api_key, api_version, correlation_id, len(CLIENT_ID))
    content = header + CLIENT_ID + b"\x00" + body
    return struct.pack(">i", len(content)) + content


def receive_response(connection: socket.socket) -> bytes:
    """One response without its size."""
    size = struct.unpack(">i", _receive_exactly(connection, 4))[0]
    return _receive_exactly(connection, size)


def unsigned_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def read_unsigned_varint(buffer: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def _record(offset_delta: int, value: bytes) -> bytes:
    content = (
        b"\x00\x00"  # Attributes and timestamp delta.
        + unsigned_varint(offset_delta << 1)
        + b"\x01"  # No key.
        + unsigned_varint(len(value) << 1)
        + value
        + b"\x00"
    )
    return unsigned_varint(len(content) << 1) + content


def _compact_string(text: str) -> bytes:
    encoded = text.encode()
    if len(encoded) > 126:
        raise ValueError("a longer name takes more than one byte of length")
    return bytes([len(encoded) + 1]) + encoded


def _receive_exactly(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        chunk = connection.recv(size - len(received))
        if not chunk:
            raise LoadError("the broker closed the connection")
        received += chunk
    return bytes(received)
