"""Encodes and decodes the records of the coordinators' topics.

Values can be read in every version that Kafka has written. For each version a dataclass is
generated that has only the fields of that version; the protocol's reader and writer use it, and
fields missing from an old version get their defaults.
"""

import dataclasses
import struct
import types
from collections.abc import Mapping
from functools import cache
from typing import Any, get_args, get_origin

from ottla.machine.record import Record, RecordKey, RecordValue, UnknownRecord
from ottla.protocol.errors import ProtocolError
from ottla.protocol.reader import read_lifted
from ottla.protocol.writer import write_entity

_VERSION = struct.Struct(">h")

Families = Mapping[int, tuple[type[Any], type[Any]]]  # Key and value classes by record type.


class FamilyCodec:
    """Implements `machine.contract.RecordCodec` for the record families of one topic."""

    def __init__(self, families: Families) -> None:
        self._families = families

    def encode(self, record: object) -> tuple[bytes, bytes | None]:
        assert isinstance(record, Record)
        key = _encode(record.key.RECORD_TYPE, type(record.key), record.key)
        if record.value is None:
            return key, None
        version = record.value.version_written
        return key, _encode(version, _layout(type(record.value), version), record.value)

    def decode(self, key: bytes | None, value: bytes | None) -> Record | UnknownRecord:
        if key is None:
            raise ValueError("a record of a coordinator has a key")
        record_type = _version_of(key)
        if record_type not in self._families:
            return UnknownRecord(record_type)
        key_type, value_type = self._families[record_type]
        decoded_key: RecordKey = _decode(key_type, key_type, key)
        if value is None:
            return Record(decoded_key, None)
        return Record(decoded_key, _decode_value(value_type, value))


def _decode_value(value_type: Any, value: bytes) -> RecordValue:
    version = _version_of(value)
    if version not in value_type.VERSIONS_READ:
        raise ValueError(f"{value_type.__name__} version {version} is not known")
    decoded: RecordValue = _decode(_layout(value_type, version), value_type, value)
    return decoded


def _encode(version: int, layout: type[Any], entity: object) -> bytes:
    out = bytearray(_VERSION.pack(version))
    write_entity(out, entity, layout)
    return bytes(out)


def _version_of(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise ValueError("a record of a coordinator starts with its version")
    version: int = _VERSION.unpack_from(data)[0]
    return version


def _decode(layout: type[Any], newest: type[Any], data: bytes) -> Any:
    try:
        return read_lifted(layout, newest, data, _VERSION.size)[0]
    except ProtocolError as error:
        raise ValueError(str(error)) from None


@cache
def _layout(newest: Any, version: int) -> Any:
    """The dataclass with the fields that `newest` has in this version."""
    flexible = version >= newest.FLEXIBLE_SINCE
    fields = [
        (declared.name, _field_type(declared.type, version), _field(declared))
        for declared in dataclasses.fields(newest)
        if _in_version(declared, version, flexible)
    ]
    return dataclasses.make_dataclass(
        newest.__name__,
        fields,
        frozen=True,
        slots=True,
        kw_only=True,
        namespace={
            "__version__": version,
            "__flexible__": flexible,
        },
    )


def _in_version(declared: dataclasses.Field[Any], version: int, flexible: bool) -> bool:
    metadata = declared.metadata
    if "tag" in metadata and not flexible:
        return False
    return bool(metadata.get("since", 0) <= version <= metadata.get("until", version))


def _field(declared: dataclasses.Field[Any]) -> Any:
    return dataclasses.field(metadata=declared.metadata, default=declared.default)


def _field_type(kind: Any, version: int) -> Any:
    """The same type, with its entities replaced by their layouts."""
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _layout(kind, version)
    if get_origin(kind) is tuple:
        item, _ = get_args(kind)
        return tuple[_field_type(item, version), ...]  # type: ignore[misc]
    if get_origin(kind) is types.UnionType:
        inner = next(part for part in get_args(kind) if part is not types.NoneType)
        return _field_type(inner, version) | None
    return kind
