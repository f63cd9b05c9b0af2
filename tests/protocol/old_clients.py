"""Requests and responses in the versions of old clients."""

import datetime as dt
import sys
from typing import Any

from kio.index import load_request_schema, load_response_schema
from tests.protocol.entities import decode, encode

from ottla.protocol.codec import newest_response_type, read_request, write_response
from ottla.protocol.frames import RequestHeader, response_prefix


def lift(key: int, version: int, entity: Any) -> Any:
    """Read a request that a client of this version sent."""
    header = RequestHeader(key, version, 1, None, 0)
    return read_request(header, memoryview(encode(entity)))


def project(key: int, version: int, entity: Any) -> Any:
    """A response as a client of this version reads it."""
    frame = write_response(key, version, 1, entity)
    prefix = response_prefix(key, version, 1)
    assert frame[:4] == (len(frame) - 4).to_bytes(4, "big")
    assert frame[4:].startswith(prefix)
    return decode(load_response_schema(key, version), frame[4 + len(prefix) :])


def old_request(key: int, version: int, /, **values: Any) -> Any:
    return load_request_schema(key, version)(**values)


def entity_of(type_: type, name: str, /, **values: Any) -> Any:
    """Builds an entity of another class of the same module, such as a nested one."""
    return getattr(sys.modules[type_.__module__], name)(**values)


def newest_response(key: int, /, **values: Any) -> Any:
    return newest_response_type(key)(**{"throttle_time": dt.timedelta(0)} | values)
