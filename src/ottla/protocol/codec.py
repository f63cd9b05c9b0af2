"""Messages of every API in every version that kio has or `messages` adds, and of Ottla's own APIs.

The broker sees only the newest version of each message: requests are lifted to it while they are
read, responses projected down from it while they are written. The types are kio's, or those of
`messages` if kio's newest version lost a field that older ones have. The client side does the same
in reverse.

kio modules are imported when their message is first read or written.
"""

import functools
import importlib
from typing import Any, cast

from kio.schema.index import api_key_map, schema_name_map
from kio.static.constants import EntityType

from ottla.protocol.errors import ProtocolError
from ottla.protocol.frames import RequestHeader, request_prefix, response_prefix
from ottla.protocol.reader import read_lifted
from ottla.protocol.writer import write_entity

_SIZE_BYTES = 4
_CORRELATION_ID_BYTES = 4

# Messages for which `messages` has a wider type.
_WIDENED = {
    "FetchRequest",
    "FetchResponse",
    "MetadataRequest",
    "MetadataResponse",
    "OffsetCommitRequest",
    "OffsetCommitResponse",
    "OffsetFetchRequest",
    "OffsetFetchResponse",
    "ProduceRequest",
    "ProduceResponse",
    "TxnOffsetCommitRequest",
    "TxnOffsetCommitResponse",
    "UpdateFeaturesResponse",
}
# Kafka versions that kio lacks: their types are in `messages`, with the version in their names.
_NEWER_VERSIONS = {18: 5, 28: 6}
# Messages whose type in `messages` replaces kio's newest, on the wire as well.
_EXTENDED = {
    "DescribeLogDirsResponse",
    "DescribeShareGroupOffsetsResponse",
    "EnvelopeRequest",
    "EnvelopeResponse",
    "ReadShareGroupStateRequest",
    "ReadShareGroupStateResponse",
    "ReadShareGroupStateSummaryResponse",
    "ShareFetchRequest",
    "WriteShareGroupStateRequest",
}
# APIs that Kafka does not have: the module in `messages`, each only in version 0.
OWN_APIS = {
    10_000: "delivery_acknowledge",
    10_001: "describe_offset_times",
    10_002: "import_records",
}


def api_versions_supported_by_codec(api_key: int) -> tuple[int, int]:
    """The lowest and highest version; ProtocolError for an unknown API."""
    versions = _versions(api_key)
    return versions[0], versions[-1]


def newest_request_type(api_key: int) -> type:
    return _newest_type(api_key, EntityType.request)


def wire_request_type(api_key: int, api_version: int) -> type:
    """The type whose fields are those of exactly this version."""
    return _wire_type(api_key, api_version, EntityType.request)


def newest_response_type(api_key: int) -> type:
    return _newest_type(api_key, EntityType.response)


def read_request(header: RequestHeader, frame: memoryview) -> Any:
    """The newest version's entity of the request. It keeps nothing of the frame."""
    wire = wire_request_type(header.api_key, header.api_version)
    target = newest_request_type(header.api_key)
    return read_lifted(wire, target, frame, header.body_position)[0]


def write_response(api_key: int, api_version: int, correlation_id: int, response: object) -> bytes:
    """The whole frame, with its size."""
    wire = _wire_type(api_key, api_version, EntityType.response)
    return _frame(response_prefix(api_key, api_version, correlation_id), response, wire)


def write_request(
    api_key: int, api_version: int, correlation_id: int, client_id: str | None, request: object
) -> bytes:
    """The whole frame, with its size."""
    wire = wire_request_type(api_key, api_version)
    prefix = request_prefix(api_key, api_version, correlation_id, client_id)
    return _frame(prefix, request, wire)


def read_response(
    api_key: int, api_version: int, frame: memoryview, *, in_place: bool = False
) -> tuple[int, Any]:
    """The correlation id, and the newest version's entity, of a frame without its size.

    With `in_place`, records are views of the frame; otherwise nothing of it is kept.
    """
    prefix_size = len(response_prefix(api_key, api_version, 0))
    if len(frame) < prefix_size:
        raise ProtocolError(f"a response header is cut short in a frame of {len(frame)}")
    correlation_id = int.from_bytes(frame[:_CORRELATION_ID_BYTES], "big", signed=True)
    wire = _wire_type(api_key, api_version, EntityType.response)
    target = newest_response_type(api_key)
    return correlation_id, read_lifted(wire, target, frame, prefix_size, in_place=in_place)[0]


def _frame(prefix: bytes, message: object, wire: type) -> bytes:
    frame = bytearray(_SIZE_BYTES)
    frame += prefix
    write_entity(frame, message, wire)
    frame[:_SIZE_BYTES] = (len(frame) - _SIZE_BYTES).to_bytes(_SIZE_BYTES, "big")
    return bytes(frame)


@functools.cache
def _versions(api_key: int) -> list[int]:
    if api_key in OWN_APIS:
        return [0]
    name = api_key_map.get(api_key)
    if name is None:
        raise ProtocolError(f"there is no API with key {api_key}")
    newer = [_NEWER_VERSIONS[api_key]] if api_key in _NEWER_VERSIONS else []
    return [*sorted(schema_name_map[name]), *newer]


@functools.cache
def _wire_type(api_key: int, api_version: int, kind: EntityType) -> type:
    if api_version not in _versions(api_key):
        name = _module_name(api_key)
        raise ProtocolError(f"version {api_version} of {name} ({api_key}) is not supported")
    if api_key in OWN_APIS:
        return _own_type(api_key, _message_name(api_key, kind))
    if _NEWER_VERSIONS.get(api_key) == api_version:
        return _own_type(api_key, f"{_message_name(api_key, kind)}V{api_version}")
    paths = cast("dict[EntityType, str]", schema_name_map[api_key_map[api_key]][api_version])
    module, _, name = paths[kind].partition(":")
    if name in _EXTENDED and api_version == _versions(api_key)[-1]:
        return _own_type(api_key, name)
    return cast("type", getattr(importlib.import_module(module), name))


@functools.cache
def _newest_type(api_key: int, kind: EntityType) -> type:
    if (name := _message_name(api_key, kind)) in _WIDENED:
        return _own_type(api_key, name)
    return _wire_type(api_key, _versions(api_key)[-1], kind)


def _message_name(api_key: int, kind: EntityType) -> str:
    return f"{_module_name(api_key)}_{kind.name}".title().replace("_", "")


def _own_type(api_key: int, name: str) -> type:
    messages = importlib.import_module(f"ottla.protocol.messages.{_module_name(api_key)}")
    return cast("type", getattr(messages, name))


def _module_name(api_key: int) -> str:
    return OWN_APIS.get(api_key) or api_key_map[api_key]
