"""Bytes of metadata records: frame version 1, api key, version, then the body.

The record has no key. The three leading numbers are unsigned varints; all of ours fit one byte.
"""

import io
from collections.abc import Callable
from typing import Final, cast, get_args

from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError

from ottla.controller.records import MetadataRecord

FRAME_VERSION: Final = 1
_PREFIX_SIZE: Final = 3

_TYPES: Final[dict[int, type[MetadataRecord]]] = {
    int(record_type.__api_key__): record_type for record_type in get_args(MetadataRecord)
}
_PREFIXES: Final = {
    record_type: bytes((FRAME_VERSION, key, record_type.__version__))
    for key, record_type in _TYPES.items()
}
_READERS: Final[dict[bytes, Callable[[bytes, int], tuple[MetadataRecord, int]]]] = {
    _PREFIXES[record_type]: entity_reader(record_type) for record_type in _TYPES.values()
}


class MetadataRecordCodec:
    """Implements `machine.contract.RecordCodec`."""

    def encode(self, record: object) -> tuple[bytes | None, bytes | None]:
        metadata = cast("MetadataRecord", record)
        record_type = type(metadata)
        buffer = io.BytesIO()
        buffer.write(_PREFIXES[record_type])
        entity_writer(record_type)(buffer, metadata)
        return None, buffer.getvalue()

    def decode(self, key: bytes | None, value: bytes | None) -> object:
        if key is not None or value is None or len(value) < _PREFIX_SIZE:
            raise ValueError("a metadata record has no key and at least three bytes of value")
        reader = _READERS.get(value[:_PREFIX_SIZE])
        if reader is None:
            raise ValueError(_unknown(value))
        try:
            record, size = reader(value, _PREFIX_SIZE)
        except SerialError as error:
            raise ValueError(f"metadata record of {len(value)} bytes: {error}") from error
        if size != len(value) - _PREFIX_SIZE:
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
