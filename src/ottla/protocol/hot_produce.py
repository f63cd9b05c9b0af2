"""Produce (0): v3-v13, parsed in place and packed by hand.

v5   log start offset in the response
v8   record errors and error message in the response (KIP-467)
v9   flexible
v10  current leader and node endpoints in the response (KIP-951)
v13  topic ids for names (KIP-516)

Record bytes are never copied: `records` is a slice of the frame, writable if the frame is, and
valid as long as the frame is.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from ottla.protocol.errors import ErrorCode, ProtocolError
from ottla.protocol.leader_hints import (
    NO_LEADER,
    Leader,
    NodeEndpoint,
    encode_leader,
    encode_node_endpoints,
)
from ottla.protocol.wire_primitives import (
    MALFORMED,
    Cache,
    compact_names,
    compact_string,
    decoded_strings,
    decoded_uuids,
    encode_count,
    legacy_names,
    legacy_string,
    read_compact_string,
    read_count,
    read_int32,
    read_legacy_string,
    read_string,
    read_uuid,
    read_uvarint,
    skip_tags,
    uuid_bytes,
    uvarint,
    validate_items,
)

LOG_START_OFFSET_FROM = 5
RECORD_ERRORS_FROM = 8
FLEXIBLE_FROM = 9
LEADER_HINTS_FROM = 10
TOPIC_ID_FROM = 13


class ProducedPartition(NamedTuple):
    topic: str  # Empty from v13 on.
    topic_id: UUID | None  # From v13 on.
    partition: int
    records: memoryview | None


class ProducedTopic(NamedTuple):
    topic: str
    topic_id: UUID | None
    partitions: list[ProducedPartition]


class ProduceRequest(NamedTuple):
    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[ProducedTopic]


class RecordErrorResult(NamedTuple):
    batch_index: int  # Index of the record in the batch.
    message: str | None


class PartitionResult(NamedTuple):
    partition: int
    error_code: int = ErrorCode.none
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    error_message: str | None = None
    record_errors: Sequence[RecordErrorResult] = ()
    current_leader: Leader | None = None  # The redirect, if this broker is not the leader.


class TopicResult(NamedTuple):
    topic: str
    topic_id: UUID | None
    partitions: Sequence[PartitionResult]


_Unpack = Callable[[memoryview, int], tuple[Any, ...]]
_new_tuple = tuple.__new__

# One topic with a name of n bytes and one partition: all fixed fields up to the records at once.
_unpack_legacy_start = struct.Struct(">hhiih").unpack_from
_LEGACY_START_SIZE = 14
_unpack_flexible_start = struct.Struct(">BhiBB").unpack_from
_FLEXIBLE_START_SIZE = 9
_unpack_by_id_start = struct.Struct(">BhiB16sBi").unpack_from
_BY_ID_START_SIZE = 29
_legacy_partition: Cache[int, _Unpack] = Cache(
    lambda size: struct.Struct(f">{size}siii").unpack_from
)
_flexible_partition: Cache[int, _Unpack] = Cache(
    lambda size: struct.Struct(f">{size - 1}sBi").unpack_from
)
_NAME_SIZE_MAX = 126  # The maximum in one byte of a compact length.

_unpack_acks = struct.Struct(">hi").unpack_from
_NO_TAGS = b"\x00\x00\x00"


def parse_produce(frame: memoryview, position: int, version: int) -> ProduceRequest:
    """The request whose body starts at `position`, or ProtocolError."""
    try:
        if version < FLEXIBLE_FROM:
            return _parse_one_legacy(frame, position) or _parse(frame, position, version)
        if version < TOPIC_ID_FROM:
            return _parse_one_flexible(frame, position) or _parse(frame, position, version)
        return _parse_one_by_id(frame, position) or _parse(frame, position, version)
    except MALFORMED:
        raise ProtocolError(f"a Produce request is cut short in a frame of {len(frame)}") from None


def _one(
    acks: int,
    timeout_ms: int,
    topic: str,
    topic_id: UUID | None,
    partition: int,
    records: memoryview,
) -> ProduceRequest:
    produced = _new_tuple(ProducedPartition, (topic, topic_id, partition, records))
    topics = [_new_tuple(ProducedTopic, (topic, topic_id, [produced]))]
    return _new_tuple(ProduceRequest, (None, acks, timeout_ms, topics))


def _parse_one_legacy(frame: memoryview, position: int) -> ProduceRequest | None:
    """The most common shape: no transaction, one topic, one partition. None for any other."""
    if len(frame) - position < _LEGACY_START_SIZE:
        return None
    null, acks, timeout_ms, topics, name_size = _unpack_legacy_start(frame, position)
    start = position + _LEGACY_START_SIZE + name_size + 12
    if null != -1 or topics != 1 or not 0 <= name_size <= _NAME_SIZE_MAX or start > len(frame):
        return None
    name, partitions, partition, size = _legacy_partition[name_size](
        frame, position + _LEGACY_START_SIZE
    )
    end = start + size
    if partitions != 1 or size < 0 or end > len(frame):
        return None
    return _one(acks, timeout_ms, decoded_strings[name], None, partition, frame[start:end])


def _parse_one_flexible(frame: memoryview, position: int) -> ProduceRequest | None:
    if len(frame) - position < _FLEXIBLE_START_SIZE:
        return None
    null, acks, timeout_ms, topics, name_size = _unpack_flexible_start(frame, position)
    position += _FLEXIBLE_START_SIZE
    if null or topics != 2 or not 0 < name_size <= _NAME_SIZE_MAX + 1:
        return None
    start = position + name_size + 4
    if start > len(frame):
        return None
    name, partitions, partition = _flexible_partition[name_size](frame, position)
    if partitions != 2:
        return None
    records = _read_last_records(frame, start)
    if records is None:
        return None
    return _one(acks, timeout_ms, decoded_strings[name], None, partition, records)


def _parse_one_by_id(frame: memoryview, position: int) -> ProduceRequest | None:
    if len(frame) - position < _BY_ID_START_SIZE:
        return None
    start = _unpack_by_id_start(frame, position)
    null, acks, timeout_ms, topics, topic_id, partitions, partition = start
    if null or topics != 2 or partitions != 2:
        return None
    records = _read_last_records(frame, position + _BY_ID_START_SIZE)
    if records is None:
        return None
    return _one(acks, timeout_ms, "", decoded_uuids[topic_id], partition, records)


def _read_last_records(frame: memoryview, position: int) -> memoryview | None:
    """Compact records followed only by empty tagged fields; otherwise None."""
    size, position = read_uvarint(frame, position)
    end = position + size - 1
    if not size or frame[end : end + 3] != _NO_TAGS:
        return None
    return frame[position:end]


def _parse(frame: memoryview, position: int, version: int) -> ProduceRequest:
    flexible = version >= FLEXIBLE_FROM
    read_nullable_string = read_compact_string if flexible else read_legacy_string
    transactional_id, position = read_nullable_string(frame, position)
    acks, timeout_ms = _unpack_acks(frame, position)
    count, position = read_count(frame, position + 6, flexible)
    items = count
    topics = []
    for _ in range(count):
        topic, position = _parse_topic(frame, position, version)
        topics.append(topic)
        items += len(topic.partitions)
        validate_items(items)
    if flexible:
        skip_tags(frame, position)
    return ProduceRequest(transactional_id, acks, timeout_ms, topics)


def _parse_topic(frame: memoryview, position: int, version: int) -> tuple[ProducedTopic, int]:
    flexible = version >= FLEXIBLE_FROM
    topic, topic_id = "", None
    if version >= TOPIC_ID_FROM:
        topic_id, position = read_uuid(frame, position)
    else:
        topic, position = read_string(frame, position, flexible)
    count, position = read_count(frame, position, flexible)
    partitions = []
    for _ in range(count):
        (partition,) = read_int32(frame, position)
        records, position = _read_records(frame, position + 4, flexible)
        if flexible:
            position = skip_tags(frame, position)
        partitions.append(_new_tuple(ProducedPartition, (topic, topic_id, partition, records)))
    if flexible:
        position = skip_tags(frame, position)
    return _new_tuple(ProducedTopic, (topic, topic_id, partitions)), position


def _read_records(
    frame: memoryview, position: int, flexible: bool
) -> tuple[memoryview | None, int]:
    if flexible:
        size, position = read_uvarint(frame, position)
        size -= 1
    else:
        (size,) = read_int32(frame, position)
        position += 4
    if size == -1:
        return None, position
    end = position + size
    if size < 0 or end > len(frame):
        raise ProtocolError(f"records of {size} bytes in {len(frame) - position}")
    return frame[position:end], end


_INT32 = struct.Struct(">i")
_ONE_LEGACY_START = struct.Struct(">iii")
_ONE_FLEXIBLE_START = struct.Struct(">iiBB")
# From the partition count to the end, for one partition without an error.
_ONE_LEGACY_END = {
    3: struct.Struct(">iihqqi"),
    5: struct.Struct(">iihqqqi"),
    8: struct.Struct(">iihqqqihi"),
}
_ONE_FLEXIBLE_END = struct.Struct(">BihqqqBBBBiB")
_PARTITION = struct.Struct(">ihqq")
_PARTITION_WITH_LOG_START = struct.Struct(">ihqqq")


def encode_produce_response(
    version: int,
    correlation_id: int,
    topics: Sequence[TopicResult],
    throttle_ms: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> bytes:
    """The whole frame, with its size."""
    if len(topics) == 1 and not node_endpoints:
        topic, topic_id, partitions = topics[0]
        if len(partitions) == 1:
            result = partitions[0]
            # The code, the message, the record errors, the leader.
            if not result[1] and result[5] is None and not result[6] and result[7] is None:
                return _encode_one(version, correlation_id, topic, topic_id, result, throttle_ms)
    return _encode(version, correlation_id, topics, throttle_ms, node_endpoints)


def _encode_one(
    version: int,
    correlation_id: int,
    topic: str,
    topic_id: UUID | None,
    result: PartitionResult,
    throttle_ms: int,
) -> bytes:
    """The most common shape: one partition of one topic, no error."""
    partition, _, base_offset, append_time, log_start_offset, _, _, _ = result
    if version >= FLEXIBLE_FROM:
        name = compact_names[topic] if version < TOPIC_ID_FROM else uuid_bytes(topic_id)
        end = _ONE_FLEXIBLE_END.pack(
            2, partition, 0, base_offset, append_time, log_start_offset, 1, 0, 0, 0, throttle_ms, 0
        )
        size = 6 + len(name) + len(end)
        return _ONE_FLEXIBLE_START.pack(size, correlation_id, 0, 2) + name + end
    name = legacy_names[topic]
    if version >= RECORD_ERRORS_FROM:
        end = _ONE_LEGACY_END[8].pack(
            1, partition, 0, base_offset, append_time, log_start_offset, 0, -1, throttle_ms
        )
    elif version >= LOG_START_OFFSET_FROM:
        end = _ONE_LEGACY_END[5].pack(
            1, partition, 0, base_offset, append_time, log_start_offset, throttle_ms
        )
    else:
        end = _ONE_LEGACY_END[3].pack(1, partition, 0, base_offset, append_time, throttle_ms)
    return _ONE_LEGACY_START.pack(8 + len(name) + len(end), correlation_id, 1) + name + end


def _encode(
    version: int,
    correlation_id: int,
    topics: Sequence[TopicResult],
    throttle_ms: int,
    node_endpoints: Sequence[NodeEndpoint],
) -> bytes:
    flexible = version >= FLEXIBLE_FROM
    body = bytearray(_INT32.pack(correlation_id))
    if flexible:
        body += b"\x00"
    body += encode_count(len(topics), flexible)
    for topic in topics:
        _append_topic(body, topic, version)
    body += _INT32.pack(throttle_ms)
    if flexible:
        body += encode_node_endpoints(node_endpoints if version >= LEADER_HINTS_FROM else ())
    return _INT32.pack(len(body)) + body


def _append_topic(body: bytearray, topic: TopicResult, version: int) -> None:
    flexible = version >= FLEXIBLE_FROM
    if version >= TOPIC_ID_FROM:
        body += uuid_bytes(topic.topic_id)
    else:
        body += (compact_names if flexible else legacy_names)[topic.topic]
    body += encode_count(len(topic.partitions), flexible)
    for result in topic.partitions:
        _append_partition(body, result, version)
    if flexible:
        body += b"\x00"


def _append_partition(body: bytearray, result: PartitionResult, version: int) -> None:
    if version >= LOG_START_OFFSET_FROM:
        body += _PARTITION_WITH_LOG_START.pack(*result[:5])
    else:
        body += _PARTITION.pack(*result[:4])
    if version < RECORD_ERRORS_FROM:
        return
    flexible = version >= FLEXIBLE_FROM
    string = compact_string if flexible else legacy_string
    body += encode_count(len(result.record_errors), flexible)
    for batch_index, message in result.record_errors:
        body += _INT32.pack(batch_index) + string(message)
        if flexible:
            body += b"\x00"
    body += string(result.error_message)
    if flexible:
        body += _leader_tags(result.current_leader if version >= LEADER_HINTS_FROM else None)


def _leader_tags(leader: Leader | None) -> bytes:
    if leader is None or leader == NO_LEADER:
        return b"\x00"
    data = encode_leader(leader)
    return b"\x01\x00" + uvarint(len(data)) + data
