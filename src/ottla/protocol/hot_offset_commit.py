"""OffsetCommit (8): v2-v10, parsed in place and packed by hand.

v3   throttle time in the response
v5   no retention time
v6   the leader epoch of the last record that was read (KIP-320)
v7   group instance id (KIP-345)
v8   flexible
v10  topic ids for names (KIP-516)
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from ottla.protocol.errors import ErrorCode, ProtocolError
from ottla.protocol.wire_primitives import (
    MALFORMED,
    compact_names,
    legacy_names,
    read_compact_string,
    read_count,
    read_int32,
    read_legacy_string,
    read_string,
    read_uuid,
    skip_tags,
    uuid_bytes,
    uvarint,
    validate_items,
)

THROTTLE_FROM = 3
RETENTION_UNTIL = 4
LEADER_EPOCH_FROM = 6
INSTANCE_ID_FROM = 7
FLEXIBLE_FROM = 8
TOPIC_ID_FROM = 10

NO_RETENTION_TIME = -1
NO_LEADER_EPOCH = -1


class CommittedPartition(NamedTuple):
    partition: int
    offset: int
    leader_epoch: int
    metadata: str | None


class CommittedTopic(NamedTuple):
    topic: str  # Empty from v10 on.
    topic_id: UUID | None  # From v10 on.
    partitions: list[CommittedPartition]


class OffsetCommitRequest(NamedTuple):
    group_id: str
    generation_id_or_member_epoch: int
    member_id: str
    group_instance_id: str | None
    retention_ms: int  # NO_RETENTION_TIME: use the broker's.
    topics: list[CommittedTopic]


class TopicResult(NamedTuple):
    topic: str
    topic_id: UUID | None
    partitions: Sequence[tuple[int, ErrorCode]]


_new_tuple = tuple.__new__
_unpack_retention = struct.Struct(">q").unpack_from
_unpack_offset = struct.Struct(">iq").unpack_from
_OFFSET_SIZE = 12
_unpack_offset_and_epoch = struct.Struct(">iqi").unpack_from
_OFFSET_AND_EPOCH_SIZE = 16


def parse_offset_commit(frame: memoryview, position: int, version: int) -> OffsetCommitRequest:
    """The request whose body starts at `position`, or ProtocolError. It keeps nothing of it."""
    try:
        return _parse(frame, position, version)
    except MALFORMED:
        raise ProtocolError(
            f"an OffsetCommit request is cut short in a frame of {len(frame)}"
        ) from None


def _parse(frame: memoryview, position: int, version: int) -> OffsetCommitRequest:
    flexible = version >= FLEXIBLE_FROM
    read_nullable_string = read_compact_string if flexible else read_legacy_string
    group_id, position = read_nullable_string(frame, position)
    (generation,) = read_int32(frame, position)
    member_id, position = read_nullable_string(frame, position + 4)
    if group_id is None or member_id is None:
        raise ProtocolError("null where a string must be")
    group_instance_id = None
    if version >= INSTANCE_ID_FROM:
        group_instance_id, position = read_nullable_string(frame, position)
    retention_ms = NO_RETENTION_TIME
    if version <= RETENTION_UNTIL:
        (retention_ms,) = _unpack_retention(frame, position)
        position += 8
    count, position = read_count(frame, position, flexible)
    items = count
    topics = []
    for _ in range(count):
        topic, position = _parse_topic(frame, position, version)
        topics.append(topic)
        items += len(topic[2])
        validate_items(items)
    if flexible:
        skip_tags(frame, position)
    return _new_tuple(
        OffsetCommitRequest,
        (group_id, generation, member_id, group_instance_id, retention_ms, topics),
    )


def _parse_topic(frame: memoryview, position: int, version: int) -> tuple[CommittedTopic, int]:
    flexible = version >= FLEXIBLE_FROM
    topic, topic_id = "", None
    if version >= TOPIC_ID_FROM:
        topic_id, position = read_uuid(frame, position)
    else:
        topic, position = read_string(frame, position, flexible)
    read_nullable_string = read_compact_string if flexible else read_legacy_string
    count, position = read_count(frame, position, flexible)
    partitions = []
    for _ in range(count):
        if version >= LEADER_EPOCH_FROM:
            partition, offset, leader_epoch = _unpack_offset_and_epoch(frame, position)
            position += _OFFSET_AND_EPOCH_SIZE
        else:
            partition, offset = _unpack_offset(frame, position)
            leader_epoch = NO_LEADER_EPOCH
            position += _OFFSET_SIZE
        metadata, position = read_nullable_string(frame, position)
        if flexible:
            position = skip_tags(frame, position)
        committed = (partition, offset, leader_epoch, metadata)
        partitions.append(_new_tuple(CommittedPartition, committed))
    if flexible:
        position = skip_tags(frame, position)
    return _new_tuple(CommittedTopic, (topic, topic_id, partitions)), position


_INT32 = struct.Struct(">i")
_LEGACY_PARTITION = struct.Struct(">ih")
_FLEXIBLE_PARTITION = struct.Struct(">ihB")
_FLEXIBLE_START = struct.Struct(">iBi")  # Correlation id, no tagged fields, throttle time.


def encode_offset_commit_response(
    version: int, correlation_id: int, topics: Sequence[TopicResult], throttle_ms: int = 0
) -> bytes:
    """The whole frame, with its size."""
    if version >= FLEXIBLE_FROM:
        body = _encode_flexible(version, correlation_id, topics, throttle_ms)
    else:
        body = _encode_legacy(version, correlation_id, topics, throttle_ms)
    return _INT32.pack(len(body)) + body


def _encode_flexible(
    version: int, correlation_id: int, topics: Sequence[TopicResult], throttle_ms: int
) -> bytes:
    parts = [_FLEXIBLE_START.pack(correlation_id, 0, throttle_ms), uvarint(len(topics) + 1)]
    for topic, topic_id, partitions in topics:
        parts.append(compact_names[topic] if version < TOPIC_ID_FROM else uuid_bytes(topic_id))
        parts.append(uvarint(len(partitions) + 1))
        parts += [_FLEXIBLE_PARTITION.pack(partition, code, 0) for partition, code in partitions]
        parts.append(b"\x00")
    parts.append(b"\x00")
    return b"".join(parts)


def _encode_legacy(
    version: int, correlation_id: int, topics: Sequence[TopicResult], throttle_ms: int
) -> bytes:
    parts = [_INT32.pack(correlation_id)]
    if version >= THROTTLE_FROM:
        parts.append(_INT32.pack(throttle_ms))
    parts.append(_INT32.pack(len(topics)))
    for topic, _, partitions in topics:
        parts.append(legacy_names[topic])
        parts.append(_INT32.pack(len(partitions)))
        parts += [_LEGACY_PARTITION.pack(partition, code) for partition, code in partitions]
    return b"".join(parts)
