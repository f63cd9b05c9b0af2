"""Records in which brokers keep their own state: metadata, and what coordinators remember."""

import dataclasses
from pathlib import Path

from ottla.controller.record_codec import MetadataRecordCodec
from ottla.groups.record_codec import GroupRecordCodec
from ottla.machine.contract import RecordCodec
from ottla.protocol.errors import ProtocolError
from ottla.protocol.topics import CLUSTER_METADATA_TOPIC, CONSUMER_OFFSETS_TOPIC
from ottla.records.builder import Record


def record_codec_of(file: Path) -> RecordCodec | None:
    """By the name of the partition's directory; None for topics of users."""
    topic = file.absolute().parent.name.rpartition("-")[0]
    if topic == CLUSTER_METADATA_TOPIC:
        return MetadataRecordCodec()
    if topic == CONSUMER_OFFSETS_TOPIC:
        return GroupRecordCodec()
    return None


def describe_state(codec: RecordCodec, record: Record) -> object:
    """The fields of a record, or what its decoder says about one that it does not know."""
    try:
        decoded = codec.decode(record.key, record.value)
    except (ValueError, ProtocolError) as error:
        return {"unknown": str(error)}
    return _fields(decoded)


def _fields(decoded: object) -> object:
    if dataclasses.is_dataclass(decoded) and not isinstance(decoded, type):
        fields = {each.name: getattr(decoded, each.name) for each in dataclasses.fields(decoded)}
    elif isinstance(decoded, tuple) and hasattr(decoded, "_asdict"):
        fields = decoded._asdict()
    elif isinstance(decoded, list | tuple):
        return [_fields(item) for item in decoded]
    else:
        return decoded
    return {
        "type": type(decoded).__name__,
        **{name: _fields(value) for name, value in fields.items()},
    }
