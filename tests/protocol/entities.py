"""Strategies for kio's entities, made from their schemas, and kio as the reference codec."""

import datetime as dt
import functools
import io
import uuid
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.serial._introspect import EntityField, EntityTupleField, classify_field, is_optional

EPOCH = dt.datetime.fromtimestamp(0, dt.UTC)


def signed(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _milliseconds(value: int) -> dt.timedelta:
    return dt.timedelta(milliseconds=value)


_PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": signed(8),
    "int16": signed(16),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": signed(32),
    "int64": signed(64),
    "float64": st.floats(allow_nan=False, allow_infinity=False),
    # Characters are drawn one by one, so what is only long is made without drawing.
    "string": st.text(max_size=12) | st.integers(126, 130).map("a".__mul__),
    "bytes": st.binary(max_size=12),
    "records": st.binary(max_size=200),
    "uuid": st.none() | st.uuids().filter(lambda value: value.int != 0),
    "error_code": st.sampled_from(ErrorCode),
    "timedelta_i32": signed(32).map(_milliseconds),
    "timedelta_i64": signed(50).map(_milliseconds),
    "datetime_i64": st.integers(0, 2**42).map(lambda value: EPOCH + _milliseconds(value)),
}


@functools.cache
def entities(type_: type) -> st.SearchStrategy[Any]:
    return st.builds(type_, **{field.name: _values(field) for field in fields(type_)})


def _values(field: Any) -> st.SearchStrategy[Any]:
    kind = classify_field(field)
    if isinstance(kind, EntityField | EntityTupleField):
        strategy = entities(kind.type_)
    else:
        strategy = _PRIMITIVES[field.metadata["kafka_type"]]
    if kind.is_array:
        strategy = st.lists(strategy, max_size=3).map(tuple)
        nullable = type(None) in getattr(field.type, "__args__", ())
    else:
        nullable = is_optional(field) and field.metadata.get("kafka_type") != "uuid"
    if nullable and "tag" not in field.metadata:
        strategy = st.none() | strategy
    return strategy


def encode(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def decode(type_: type, data: bytes) -> Any:
    read: Callable[[bytes, int], tuple[Any, int]] = entity_reader(type_)
    entity, size = read(data, 0)
    assert size == len(data)
    return entity


def versions(api_key: int) -> list[int]:
    return sorted(schema_name_map[api_key_map[api_key]])


def milliseconds(value: dt.timedelta | dt.datetime | None) -> int:
    if value is None:
        return -1
    if isinstance(value, dt.datetime):
        value -= EPOCH
    return value // dt.timedelta(milliseconds=1)


def uuids() -> st.SearchStrategy[uuid.UUID | None]:
    return _PRIMITIVES["uuid"]
