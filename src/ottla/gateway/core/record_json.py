"""The JSON form of a record, the same wherever records enter or leave as JSON.

    {"topic": "orders", "partition": 0, "offset": 17, "timestamp": 1790000000000,
     "key": "k", "value": "text", "headers": [{"name": "a", "value": "text"}]}

Bytes that are not UTF-8 are in base64, as `key_base64` and `value_base64`. Nothing is null.
Publishers may also give a value that is JSON other than text; it is written as JSON.
"""

import base64
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from ottla.records.builder import Headers, Record

HEADERS_MAX = 1_000

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

_INT64_MAX = (1 << 63) - 1
_INT32_MAX = (1 << 31) - 1


class NewRecord(NamedTuple):
    """A record to publish."""

    value: bytes | None
    key: bytes | None = None
    partition: int | None = None  # None: chosen by key, as Kafka's own clients do, or any.
    headers: Headers = ()
    timestamp_ms: int | None = None  # None (or librdkafka's 0): now.


def record_to_json(topic: str, partition: int, record: Record) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "topic": topic,
        "partition": partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
    }
    _put(fields, "key", record.key)
    _put(fields, "value", record.value)
    headers: list[dict[str, Any]] = []
    for name, value in record.headers:
        header: dict[str, Any] = {"name": name}
        _put(header, "value", value)
        headers.append(header)
    fields["headers"] = headers
    return fields


def encode_record(topic: str, partition: int, record: Record) -> bytes:
    return encode(record_to_json(topic, partition, record))


def encode(data: object) -> bytes:
    """For what the gateway itself made; JSON of others may have numbers that do not fit."""
    return orjson.dumps(data, option=orjson.OPT_NON_STR_KEYS)


def record_from_json(data: object) -> NewRecord:
    """Ignores unknown fields. Raises ValueError with the reason."""
    if not isinstance(data, Mapping):
        raise ValueError("a record is an object")
    return NewRecord(
        value=_bytes(data, "value"),
        key=_bytes(data, "key"),
        partition=_number(data, "partition", _INT32_MAX),
        headers=_headers(data.get("headers", [])),
        timestamp_ms=_number(data, "timestamp", _INT64_MAX),
    )


def _put(fields: dict[str, Any], name: str, data: bytes | None) -> None:
    if data is None:
        fields[name] = None
        return
    try:
        fields[name] = data.decode()
    except UnicodeDecodeError:
        fields[f"{name}_base64"] = base64.b64encode(data).decode()


def _number(data: Mapping[str, Any], name: str, most: int) -> int | None:
    value = data.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise ValueError(f"{name} is a whole number, not below 0")
    return value


def _bytes(data: Mapping[str, Any], name: str) -> bytes | None:
    encoded = data.get(f"{name}_base64")
    value = data.get(name)
    if encoded is None:
        return value_to_bytes(value)
    if value is not None:
        raise ValueError(f"{name} and {name}_base64 exclude each other")
    try:
        return base64.b64decode(encoded, validate=True)
    except (TypeError, ValueError):
        raise ValueError(f"{name}_base64 is not base64") from None


def value_to_bytes(value: Any) -> bytes | None:
    """Text as it is, null as None, everything else as JSON. Raises ValueError."""
    if value is None:
        return None
    try:
        return (value if isinstance(value, str) else _ENCODER.encode(value)).encode()
    except UnicodeEncodeError:  # Half of a surrogate pair, which JSON can encode.
        raise ValueError("text that is not Unicode; use base64 for bytes") from None


def _headers(data: Any) -> Headers:
    if not isinstance(data, list) or len(data) > HEADERS_MAX:
        raise ValueError(f"headers is a list of at most {HEADERS_MAX} objects: name and value")
    found = []
    for header in data:
        if not isinstance(header, Mapping) or not isinstance(header.get("name"), str):
            raise ValueError("a header is an object: name and value")
        value_to_bytes(header["name"])
        found.append((header["name"], _bytes(header, "value")))
    return tuple(found)
