"""Committed offsets to bytes and back, fast: they are nearly all that a coordinator stores.

The layout is that of `record_codec`, which has the general rules and reads what is not usual here:
other versions, long metadata, damage.
"""

import struct
import uuid

from ottla.groups.offsets.records import OffsetCommitKey, OffsetCommitValue
from ottla.groups.record import Record
from ottla.protocol.wire import decoded_strings, decoded_uuids

OFFSET_COMMIT_PREFIX = struct.pack(">h", OffsetCommitKey.RECORD_TYPE)

_TYPE_AND_SIZE = struct.Struct(">hh")
_SIZE = struct.Struct(">h")
_PARTITION = struct.Struct(">i")
_VALUE_START = struct.Struct(">hqiB")  # Version, offset, leader epoch, size of the metadata and 1.
_TIMESTAMP = struct.Struct(">q")
_USUAL_VALUE = struct.Struct(">hqiBq3s16s")  # Without metadata, with a topic id.
_VERSION = 4
_METADATA_BYTES_MAX = 126  # Longer ones have a size of two bytes.

_NO_TAGS = b"\x00"
_TOPIC_ID_TAG = b"\x01\x00\x10"  # One tagged field, number 0, of 16 bytes.


def encode_offset_commit(
    key: OffsetCommitKey, value: OffsetCommitValue
) -> tuple[bytes, bytes] | None:
    """None for a value that needs the general codec."""
    metadata = value.metadata.encode()
    if value.expire_timestamp >= 0 or len(metadata) > _METADATA_BYTES_MAX:
        return None
    return encode_offset_key(key), b"".join(
        (
            _VALUE_START.pack(_VERSION, value.offset, value.leader_epoch, len(metadata) + 1),
            metadata,
            _TIMESTAMP.pack(value.commit_timestamp),
            _NO_TAGS if value.topic_id is None else _TOPIC_ID_TAG + value.topic_id.bytes,
        )
    )


def encode_offset_key(key: OffsetCommitKey) -> bytes:
    group, topic = key.group.encode(), key.topic.encode()
    return b"".join(
        (
            _TYPE_AND_SIZE.pack(OffsetCommitKey.RECORD_TYPE, len(group)),
            group,
            _SIZE.pack(len(topic)),
            topic,
            _PARTITION.pack(key.partition),
        )
    )


def decode_offset_commit(key: bytes, value: bytes | None) -> Record | None:
    """None for what the general codec must read."""
    try:
        decoded_key = _decode_key(key)
        decoded_value = None if value is None else _decode_value(value)
    except (struct.error, UnicodeDecodeError):
        return None
    if decoded_key is None or (decoded_value is None and value is not None):
        return None
    return Record(decoded_key, decoded_value)


def _decode_key(key: bytes) -> OffsetCommitKey | None:
    _, size = _TYPE_AND_SIZE.unpack_from(key)
    end = 4 + max(size, 0)
    (topic_size,) = _SIZE.unpack_from(key, end)
    if size < 0 or topic_size < 0:
        return None
    topic_end = end + 2 + topic_size
    (partition,) = _PARTITION.unpack_from(key, topic_end)
    return OffsetCommitKey(
        group=decoded_strings[key[4:end]],
        topic=decoded_strings[key[end + 2 : topic_end]],
        partition=partition,
    )


def _decode_value(value: bytes) -> OffsetCommitValue | None:
    if len(value) == _USUAL_VALUE.size:
        version, offset, epoch, metadata_size, timestamp, tag, topic_id = _USUAL_VALUE.unpack(value)
        if version == _VERSION and metadata_size == 1 and tag == _TOPIC_ID_TAG:
            return OffsetCommitValue(
                offset=offset,
                leader_epoch=epoch,
                metadata="",
                commit_timestamp=timestamp,
                topic_id=decoded_uuids[topic_id],
            )
    return _decode_any_value(value)


def _decode_any_value(value: bytes) -> OffsetCommitValue | None:
    version, offset, leader_epoch, metadata_size = _VALUE_START.unpack_from(value)
    if version != _VERSION or not 1 <= metadata_size <= _METADATA_BYTES_MAX + 1:
        return None
    end = _VALUE_START.size + metadata_size - 1
    (commit_timestamp,) = _TIMESTAMP.unpack_from(value, end)
    tags = value[end + _TIMESTAMP.size :]
    topic_id: uuid.UUID | None = None
    if tags != _NO_TAGS:
        if len(tags) != 19 or not tags.startswith(_TOPIC_ID_TAG):
            return None
        topic_id = decoded_uuids[tags[3:]]
    return OffsetCommitValue(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=value[_VALUE_START.size : end].decode() if metadata_size > 1 else "",
        commit_timestamp=commit_timestamp,
        topic_id=topic_id,
    )
