"""Encodes metadata records: frame version 1, API key, version, then the body.

The record has no key. The three leading numbers are unsigned varints; all of ours fit in one byte.
Records come from other nodes, so they are parsed as carefully as requests.
"""

from typing import Final, cast, get_args

from ottla.controller.records import MetadataRecord
from ottla.protocol.errors import ProtocolError
from ottla.protocol.reader import read_entity
from ottla.protocol.writer import write_entity

FRAME_VERSION: Final = 1
_PREFIX_SIZE: Final = 3

_TYPES: Final[dict[int, type[MetadataRecord]]] = {
    int(record_type.__api_key__): record_type for record_type in get_args(MetadataRecord)
}
_PREFIXES: Final = {
    record_type: bytes((FRAME_VERSION, key, record_type.__version__))
    for key, record_type in _TYPES.items()
}
_BY_PREFIX: Final = {prefix: record_type for record_type, prefix in _PREFIXES.items()}


class MetadataRecordCodec:
    """Implements `machine.contract.RecordCodec`."""

    def encode(self, record: object) -> tuple[bytes | None, bytes | None]:
        metadata = cast("MetadataRecord", record)
        buffer = bytearray(_PREFIXES[type(metadata)])
        write_entity(buffer, metadata)
        return None, bytes(buffer)

    def decode(self, key: bytes | None, value: bytes | None) -> object:
        if key is not None or value is None or len(value) < _PREFIX_SIZE:
            raise ValueError("a metadata record has no key and at least three bytes of value")
        record_type = _BY_PREFIX.get(value[:_PREFIX_SIZE])
        if record_type is None:
            raise ValueError(_unknown(value))
        try:
            record, end = read_entity(record_type, value, _PREFIX_SIZE)
        except ProtocolError as error:
            raise ValueError(f"metadata record of {len(value)} bytes: {error}") from error
        if end != len(value):
            raise ValueError(f"{type(record).__name__} of {len(value)} bytes has a different size")
        return record


def _unknown(value: bytes) -> str:
    frame, key, version = value[:_PREFIX_SIZE]
    if frame != FRAME_VERSION:
        return f"unknown frame version {frame} of a metadata record"
    record_type = _TYPES.get(key)
    if record_type is None:
        return f"unknown metadata record type {key}"
    return f"{record_type.__name__} has version {version}, expected {record_type.__version__}"
