"""Records of `__consumer_offsets` to bytes and back.

Values are written in one version and read in every version that Kafka has written. For each version
a dataclass is made that has only the fields of that version, which kio then reads or writes; what
an old version lacks takes its default.
"""

import dataclasses
import io
import struct
import types
from functools import cache
from typing import Any, get_args, get_origin

from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError
from kio.static.constants import EntityType

from ottla.groups.classic.records import GroupMetadataKey, GroupMetadataValue
from ottla.groups.consumer.records import CONSUMER_FAMILIES
from ottla.groups.offsets.records import OffsetCommitKey, OffsetCommitValue
from ottla.groups.record import Record, RecordKey, RecordValue, UnknownRecord

_VERSION = struct.Struct(">h")

_FAMILIES: dict[int, tuple[type[Any], type[Any]]] = {
    0: (OffsetCommitKey, OffsetCommitValue),
    OffsetCommitKey.RECORD_TYPE: (OffsetCommitKey, OffsetCommitValue),
    GroupMetadataKey.RECORD_TYPE: (GroupMetadataKey, GroupMetadataValue),
    **{key.RECORD_TYPE: (key, value) for key, value in CONSUMER_FAMILIES},
}


class GroupRecordCodec:
    """Implements `machine.contract.RecordCodec`."""

    def encode(self, record: object) -> tuple[bytes, bytes | None]:
        assert isinstance(record, Record)
        key = _encode(record.key.RECORD_TYPE, type(record.key), record.key)
        if record.value is None:
            return key, None
        version = record.value.version_written
        layout = _layout(type(record.value), version, for_writing=True)
        return key, _encode(version, layout, _projected(record.value, layout))

    def decode(self, key: bytes | None, value: bytes | None) -> Record | UnknownRecord:
        if key is None:
            raise ValueError("a record of a group has a key")
        record_type = _version_of(key)
        if record_type not in _FAMILIES:
            return UnknownRecord(record_type)
        key_type, value_type = _FAMILIES[record_type]
        decoded_key: RecordKey = _read(key_type, key)
        if value is None:
            return Record(decoded_key, None)
        return Record(decoded_key, _decode_value(value_type, value))


def _decode_value(value_type: type[Any], value: bytes) -> RecordValue:
    version = _version_of(value)
    if version not in value_type.VERSIONS_READ:
        raise ValueError(f"{value_type.__name__} version {version} is not known")
    layout = _layout(value_type, version, for_writing=False)  # type: ignore[arg-type]
    lifted: RecordValue = _lifted(_read(layout, value), value_type)
    return lifted


def _encode(version: int, layout: type[Any], entity: object) -> bytes:
    buffer = io.BytesIO()
    buffer.write(_VERSION.pack(version))
    entity_writer(layout)(buffer, entity)
    return buffer.getvalue()


def _version_of(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise ValueError("a record of a group starts with its version")
    version: int = _VERSION.unpack_from(data)[0]
    return version


def _read(layout: type[Any], data: bytes) -> Any:
    try:
        entity, _ = entity_reader(layout)(data, _VERSION.size)
    except SerialError as error:
        raise ValueError(f"not a {layout.__name__}: {error}") from error
    return entity


@cache
def _layout(newest: Any, version: int, *, for_writing: bool, nullable: bool = False) -> Any:
    """The dataclass with the fields that `newest` has in this version."""
    flexible = version >= newest.FLEXIBLE_SINCE
    fields: list[tuple[str, Any, Any]] = []
    if nullable and for_writing:
        # Kafka marks a nullable struct in a tagged field as present; kio reads that mark, but does
        # not write it.
        fields.append(("present", int, _plain_field({"kafka_type": "int8"})))
    for declared in dataclasses.fields(newest):
        if _in_version(declared, version, flexible):
            tagged = "tag" in declared.metadata
            kind = _field_type(declared.type, version, for_writing=for_writing, tagged=tagged)
            fields.append((declared.name, kind, _plain_field(declared.metadata, declared)))
    return dataclasses.make_dataclass(
        newest.__name__,
        fields,
        frozen=True,
        slots=True,
        kw_only=True,
        namespace={
            "__type__": EntityType.data,
            "__version__": version,
            "__flexible__": flexible,
        },
    )


def _in_version(declared: dataclasses.Field[Any], version: int, flexible: bool) -> bool:
    metadata = declared.metadata
    if "tag" in metadata and not flexible:
        return False
    return bool(metadata.get("since", 0) <= version <= metadata.get("until", version))


def _plain_field(metadata: Any, declared: dataclasses.Field[Any] | None = None) -> Any:
    if declared is None or declared.default is dataclasses.MISSING:
        return dataclasses.field(metadata=metadata)
    return dataclasses.field(metadata=metadata, default=declared.default)


def _field_type(kind: Any, version: int, *, for_writing: bool, tagged: bool) -> Any:
    origin = get_origin(kind)
    if origin is tuple:
        item, _ = get_args(kind)
        return tuple[_field_type(item, version, for_writing=for_writing, tagged=False), ...]  # type: ignore[misc]
    if origin is types.UnionType:
        inner = next(part for part in get_args(kind) if part is not types.NoneType)
        if _is_entity(inner):
            return _layout(inner, version, for_writing=for_writing, nullable=tagged) | None
        return kind
    if _is_entity(kind):
        return _layout(kind, version, for_writing=for_writing)
    return kind


def _projected(entity: Any, layout: type[Any]) -> Any:
    """The same values in a layout that may have fewer fields."""
    values = {}
    for declared in dataclasses.fields(layout):
        if declared.name == "present":
            values["present"] = 1
        else:
            values[declared.name] = _projected_value(
                getattr(entity, declared.name), _entity_type(declared.type)
            )
    return layout(**values)


def _projected_value(value: Any, layout: type[Any] | None) -> Any:
    if layout is None or value is None:
        return value
    if isinstance(value, tuple):
        return tuple(_projected(item, layout) for item in value)
    return _projected(value, layout)


def _lifted(entity: Any, newest: type[Any]) -> Any:
    kinds = {declared.name: _entity_type(declared.type) for declared in dataclasses.fields(newest)}
    values = {}
    for declared in dataclasses.fields(entity):
        value, kind = getattr(entity, declared.name), kinds[declared.name]
        if kind is not None and value is not None:
            several = isinstance(value, tuple)
            value = (
                tuple(_lifted(item, kind) for item in value) if several else _lifted(value, kind)
            )
        values[declared.name] = value
    return newest(**values)


def _entity_type(kind: Any) -> Any:
    """The dataclass in `T`, `T | None` or `tuple[T, ...]`, if T is one, or None."""
    return next((part for part in (kind, *get_args(kind)) if _is_entity(part)), None)


def _is_entity(kind: Any) -> bool:
    return dataclasses.is_dataclass(kind)
