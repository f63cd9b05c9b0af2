"""Builds kio requests from the fields that matter; the rest is zero, empty or null."""

import dataclasses
import datetime as dt
import types
import typing
from typing import Any

import kio.index
from kio.static.primitive import i32Timedelta, i64Timedelta

from ottla.protocol.errors import ErrorCode

_ZEROS: dict[str, Any] = {
    "string": "",
    "bool": False,
    "bytes": b"",
    "records": None,
    "uuid": None,
    "float64": 0.0,
    "timedelta_i32": i32Timedelta.parse(dt.timedelta()),
    "timedelta_i64": i64Timedelta.parse(dt.timedelta()),
    "error_code": ErrorCode.none,
}


def request(api_key: int, version: int, **values: Any) -> Any:
    return _entity(kio.index.load_request_schema(api_key, version), values)


def _entity(entity_type: Any, values: dict[str, Any]) -> Any:
    hints = typing.get_type_hints(entity_type)
    fields = {field.name: field for field in dataclasses.fields(entity_type)}
    assert not values.keys() - fields, f"{entity_type} has no {values.keys() - fields.keys()}"
    given = {name: _value(hints[name], value) for name, value in values.items()}
    for name, field in fields.items():
        if name not in given and field.default is dataclasses.MISSING:
            given[name] = _zero(hints[name], field)
    return entity_type(**given)


def _value(hint: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return _entity(_item(hint), value)
    if isinstance(value, list):
        return tuple(_value(hint, item) for item in value)
    return value


def _item(hint: Any) -> Any:
    """The entity type of a field, or of its items."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) in (tuple, typing.Union):
        (found,) = (
            argument for argument in typing.get_args(hint) if argument not in (type(None), Ellipsis)
        )
        return _item(found)
    return hint


def _zero(hint: Any, field: Any) -> Any:
    if typing.get_origin(hint) is tuple:
        return ()
    if type(None) in typing.get_args(hint):
        return None
    kind = field.metadata.get("kafka_type")
    if kind is None:
        return _entity(hint, {})
    return _ZEROS.get(kind, 0)


def codes(response: Any) -> set[str]:
    """The names of all error codes in a response; no error is "none"."""
    found = set()
    if dataclasses.is_dataclass(response):
        for field in dataclasses.fields(response):
            value = getattr(response, field.name)
            if field.name.endswith("error_code"):
                found.add(ErrorCode(value).name)
            else:
                found |= codes(value)
    elif isinstance(response, tuple):
        for item in response:
            found |= codes(item)
    return found
