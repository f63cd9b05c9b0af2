"""Serialize objects to bytes and back.

A serializer takes an object and returns bytes, a string (sent as UTF-8) or None; a deserializer
takes bytes. Any such function will do. None (a missing key, or a tombstone) is not passed to them.
"""

import json
from collections.abc import Callable
from typing import Any

Serializer = Callable[[Any], bytes | str | None]
Deserializer = Callable[[bytes], Any]


def serialize_by_type(value: Any) -> bytes | str | None:
    """Bytes and strings unchanged, everything else as JSON."""
    if value is None or isinstance(value, bytes | str):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    return to_json(value)


def to_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def from_json(content: bytes) -> Any:
    return json.loads(content)


def to_text(value: Any) -> str:
    return str(value)


def from_text(content: bytes) -> str:
    return content.decode()


def raw(content: bytes) -> bytes:
    """Returns the bytes unchanged."""
    return content
