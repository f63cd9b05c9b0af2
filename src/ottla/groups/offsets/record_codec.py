"""A fast codec for committed offsets: a coordinator stores little else.

The key is the family (int16), group and topic (strings), and the partition (int32). The value is
its version (int16), and then

    offset            int64
    leader epoch      int32    since version 3
    metadata          string
    commit timestamp  int64
    expire timestamp  int64    version 1 only
    topic id          uuid     since version 4, which is flexible, as tagged field 0

Every version can be read. Version 4 is written, or 1 for an offset that sets its own expiry.
"""

import struct
import uuid
from typing import Final

from ottla.groups.offsets.records import OffsetCommitRecord, OffsetCommitValue
from ottla.protocol.errors import ProtocolError
from ottla.protocol.topics import TopicPartition
from ottla.protocol.wire_primitives import (
    MALFORMED,
    Cache,
    compact_string,
    decoded_strings,
    decoded_uuids,
    legacy_names,
    legacy_string,
    read_string,
    read_tags,
)

OFFSET_COMMIT_FAMILIES: Final = (b"\x00\x00", b"\x00\x01")  # The first bytes of a key.
_VERSIONS_READ: Final = range(5)
_FLEXIBLE_SINCE: Final = 4
_LEADER_EPOCH_SINCE: Final = 3
_EXPIRE_VERSION: Final = 1
_TOPIC_ID_TAG: Final = 0

_OFFSET = struct.Struct(">hq")  # Version and offset.
_OFFSET_AND_EPOCH = struct.Struct(">hqi")
_TIMESTAMP = struct.Struct(">q")
_TIMESTAMPS = struct.Struct(">qq")
_PARTITION = struct.Struct(">i")
_FAMILY_SIZE = 2
_GROUP_START = _FAMILY_SIZE + 2
_CACHED_BYTES_MAX = 256

# Version 4 without metadata and with a topic id, as nearly every commit.
_USUAL = struct.Struct(">hqiBq3s16s")
_USUAL_SIZE = _USUAL.size
_NO_METADATA = 1  # The string size plus 1.
_NO_TAGS = b"\x00"
_TOPIC_ID = b"\x01\x00\x10"  # One tagged field, number 0, of 16 bytes.

_unpack_size = struct.Struct(">h").unpack_from
_unpack_usual = _USUAL.unpack
_new_tuple = tuple.__new__


def encode_offset_commit(record: OffsetCommitRecord) -> tuple[bytes, bytes | None]:
    group_id, topic_partition, value = record
    key = b"".join(
        (
            OFFSET_COMMIT_FAMILIES[1],
            legacy_string(group_id),
            legacy_names[topic_partition.topic],
            _PARTITION.pack(topic_partition.partition),
        )
    )
    return key, None if value is None else _encode_value(value)


def _encode_value(value: OffsetCommitValue) -> bytes:
    offset, metadata, timestamp, leader_epoch, expire_timestamp, topic_id = value
    if expire_timestamp < 0 and not metadata and topic_id is not None:
        return _USUAL.pack(
            _FLEXIBLE_SINCE,
            offset,
            leader_epoch,
            _NO_METADATA,
            timestamp,
            _TOPIC_ID,
            topic_id.bytes,
        )
    if expire_timestamp >= 0:
        return b"".join(
            (
                _OFFSET.pack(_EXPIRE_VERSION, offset),
                legacy_string(metadata),
                _TIMESTAMPS.pack(timestamp, expire_timestamp),
            )
        )
    return b"".join(
        (
            _OFFSET_AND_EPOCH.pack(_FLEXIBLE_SINCE, offset, leader_epoch),
            compact_string(metadata),
            _TIMESTAMP.pack(timestamp),
            _NO_TAGS if topic_id is None else _TOPIC_ID + topic_id.bytes,
        )
    )


def decode_offset_commit(key: bytes, value: bytes | None) -> OffsetCommitRecord:
    """Raises ValueError if the bytes are not such a record."""
    try:
        (group_size,) = _unpack_size(key, _FAMILY_SIZE)
        group_end = _GROUP_START + group_size
        if not 0 <= group_size <= _CACHED_BYTES_MAX or len(key) - group_end > _CACHED_BYTES_MAX:
            group_id, topic_partition = _decode_unusual_key(key)
        else:
            group_id = decoded_strings[key[_GROUP_START:group_end]]
            topic_partition = _topic_partitions[key[group_end:]]
        decoded = None if value is None else _decode_value(value)
    except (*MALFORMED, ProtocolError) as error:
        raise ValueError(f"not the record of an offset: {error}") from None
    return _new_tuple(OffsetCommitRecord, (group_id, topic_partition, decoded))


def _decode_topic_partition(data: bytes) -> TopicPartition:
    """The part of a key after the group."""
    topic, position = read_string(memoryview(data), 0, flexible=False)
    if len(data) != position + _PARTITION.size:
        raise ProtocolError(f"a key of {len(data)} bytes after the group")
    return TopicPartition(topic, *_PARTITION.unpack_from(data, position))


def _decode_unusual_key(key: bytes) -> tuple[str, TopicPartition]:
    group_id, position = read_string(memoryview(key), _FAMILY_SIZE, flexible=False)
    return group_id, _decode_topic_partition(key[position:])


# Groups read the same partitions: each is in memory only once.
_topic_partitions: Cache[bytes, TopicPartition] = Cache(_decode_topic_partition, 100_000)


def _decode_value(value: bytes) -> OffsetCommitValue:
    if len(value) == _USUAL_SIZE:
        version, offset, epoch, metadata_size, timestamp, tag, topic_id = _unpack_usual(value)
        if version == _FLEXIBLE_SINCE and metadata_size == _NO_METADATA and tag == _TOPIC_ID:
            return _new_tuple(
                OffsetCommitValue, (offset, "", timestamp, epoch, -1, decoded_uuids[topic_id])
            )
    return _decode_any_value(memoryview(value))


def _decode_any_value(value: memoryview) -> OffsetCommitValue:
    version, offset = _OFFSET.unpack_from(value)
    if version not in _VERSIONS_READ:
        raise ProtocolError(f"version {version} is not known")
    position = _OFFSET.size
    leader_epoch = expire_timestamp = -1
    if version >= _LEADER_EPOCH_SINCE:
        _, _, leader_epoch = _OFFSET_AND_EPOCH.unpack_from(value)
        position = _OFFSET_AND_EPOCH.size
    metadata, position = read_string(value, position, flexible=version >= _FLEXIBLE_SINCE)
    (commit_timestamp,) = _TIMESTAMP.unpack_from(value, position)
    position += _TIMESTAMP.size
    if version == _EXPIRE_VERSION:
        (expire_timestamp,) = _TIMESTAMP.unpack_from(value, position)
    topic_id = _read_topic_id(value, position) if version >= _FLEXIBLE_SINCE else None
    return OffsetCommitValue(
        offset=offset,
        metadata=metadata,
        commit_timestamp=commit_timestamp,
        leader_epoch=leader_epoch,
        expire_timestamp=expire_timestamp,
        topic_id=topic_id,
    )


def _read_topic_id(value: memoryview, position: int) -> uuid.UUID | None:
    for tag, start, end in read_tags(value, position)[0]:
        if tag == _TOPIC_ID_TAG:
            if end - start != 16:
                raise ProtocolError(f"a topic id of {end - start} bytes")
            return decoded_uuids[bytes(value[start:end])]
    return None
