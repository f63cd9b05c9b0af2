"""Fetch (1) v18 from the follower's side: packed by hand, with the response parsed in place.

The records of a response stay where they are, in the frame.
"""

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from ottla.protocol.errors import ProtocolError
from ottla.protocol.frames import request_prefix
from ottla.protocol.hot_fetch import EpochEndOffset
from ottla.protocol.leader_hints import NO_LEADER, Leader
from ottla.protocol.wire_primitives import (
    MALFORMED,
    read_count,
    read_tags,
    read_uuid,
    read_uvarint,
    skip_tags,
    uvarint,
    validate_items,
)

FETCH_KEY: Final = 1
VERSION: Final = 18

_INT32 = struct.Struct(">i")
_START = struct.Struct(">iiibii")
_PARTITION = struct.Struct(">iiqiqiB")  # Plus the number of tagged fields.
_REPLICA_STATE = struct.Struct(">iqB")  # Plus the number of tagged fields.
_unpack_response_start = struct.Struct(">ihi").unpack_from
_unpack_partition = struct.Struct(">ihqqq").unpack_from
_unpack_diverging_epoch = struct.Struct(">iq").unpack_from
_unpack_leader = struct.Struct(">ii").unpack_from
_NO_RACK: Final = b"\x01"
_REPLICA_STATE_TAG: Final = b"\x01\x01\x0d"  # One tagged field: 1, of 13 bytes.
_ABORTED_BYTES: Final = 16


class ReplicaFetchPosition(NamedTuple):
    """A follower's position in one partition."""

    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    bytes_max: int


class ReplicaFetchRequest(NamedTuple):
    replica_id: int
    replica_epoch: int
    max_wait_ms: int
    min_bytes: int
    bytes_max: int
    session_id: int
    session_epoch: int
    topics: Sequence[tuple[UUID, Sequence[ReplicaFetchPosition]]]
    forgotten: Sequence[tuple[UUID, Sequence[int]]]


class ReplicaFetchData(NamedTuple):
    partition: int
    error_code: int
    high_watermark: int
    log_start_offset: int
    records: memoryview
    diverging_epoch: EpochEndOffset | None
    current_leader: Leader


class ReplicaFetchResponse(NamedTuple):
    error_code: int
    session_id: int
    topics: list[tuple[UUID | None, list[ReplicaFetchData]]]


def encode_replica_fetch(
    correlation_id: int, client_id: str, request: ReplicaFetchRequest
) -> bytes:
    """The whole frame, with its size."""
    data = bytearray(request_prefix(FETCH_KEY, VERSION, correlation_id, client_id))
    data += _START.pack(
        request.max_wait_ms,
        request.min_bytes,
        request.bytes_max,
        0,
        request.session_id,
        request.session_epoch,
    )
    data += uvarint(len(request.topics) + 1)
    for topic_id, positions in request.topics:
        data += topic_id.bytes + uvarint(len(positions) + 1)
        for position in positions:
            data += _PARTITION.pack(*position, 0)
        data += b"\x00"
    data += uvarint(len(request.forgotten) + 1)
    for topic_id, partitions in request.forgotten:
        data += topic_id.bytes + uvarint(len(partitions) + 1)
        data += b"".join([_INT32.pack(partition) for partition in partitions]) + b"\x00"
    data += _NO_RACK + _REPLICA_STATE_TAG
    data += _REPLICA_STATE.pack(request.replica_id, request.replica_epoch, 0)
    return _INT32.pack(len(data)) + bytes(data)


def parse_replica_fetch_response(frame: memoryview) -> ReplicaFetchResponse:
    """A response from its correlation id on, or ProtocolError."""
    try:
        return _parse(frame)
    except MALFORMED:
        raise ProtocolError(f"a Fetch response is cut short in a frame of {len(frame)}") from None


def _parse(frame: memoryview) -> ReplicaFetchResponse:
    position = skip_tags(frame, _INT32.size)
    _, error_code, session_id = _unpack_response_start(frame, position)
    count, position = read_count(frame, position + 10, True)
    items = count
    topics = []
    for _ in range(count):
        topic_id, position = read_uuid(frame, position)
        partitions_count, position = read_count(frame, position, True)
        items += partitions_count
        validate_items(items)
        partitions = []
        for _ in range(partitions_count):
            partition, position = _parse_partition(frame, position)
            partitions.append(partition)
        position = skip_tags(frame, position)
        topics.append((topic_id, partitions))
    return ReplicaFetchResponse(error_code, session_id, topics)


def _parse_partition(frame: memoryview, position: int) -> tuple[ReplicaFetchData, int]:
    partition, error_code, high_watermark, _, log_start_offset = _unpack_partition(frame, position)
    position = _skip_aborted(frame, position + 30) + 4  # Plus the preferred read replica.
    size, position = read_uvarint(frame, position)
    end = position + max(size - 1, 0)
    if end > len(frame):
        raise ProtocolError(f"records of {size - 1} bytes reach past the frame")
    records = frame[position:end]
    diverging_epoch, leader = None, NO_LEADER
    tags, after = read_tags(frame, end)
    for tag, start, _ in tags:
        if tag == 0:
            diverging_epoch = EpochEndOffset(*_unpack_diverging_epoch(frame, start))
        elif tag == 1:
            leader = Leader(*_unpack_leader(frame, start))
    data = ReplicaFetchData(
        partition, error_code, high_watermark, log_start_offset, records, diverging_epoch, leader
    )
    return data, after


def _skip_aborted(frame: memoryview, position: int) -> int:
    """Skip aborted transactions, which are null for a follower."""
    size, position = read_uvarint(frame, position)
    for _ in range(size - 1):
        position = skip_tags(frame, position + _ABORTED_BYTES)
    return position
