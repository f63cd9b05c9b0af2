"""Builds the same request in every version, leaving out the fields that a version lacks."""

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any

import kio.index

from ottla.protocol.codec import wire_request_type


def request_type(api_key: int, version: int) -> Any:
    """kio's type, or the codec's where kio lacks the API or the version."""
    try:
        return kio.index.load_request_schema(api_key, version)
    except (kio.index.UnknownAPIKey, kio.index.UnknownEntity):
        return wire_request_type(api_key, version)


def build_request(api_key: int, version: int, values: Mapping[str, Any]) -> Any:
    return build(request_type(api_key, version), values)


def build(entity_type: Any, values: Mapping[str, Any]) -> Any:
    """Mappings become entities; missing fields keep their default."""
    hints = typing.get_type_hints(entity_type)
    fields = {
        field.name: _convert(hints[field.name], values[field.name])
        for field in dataclasses.fields(entity_type)
        if field.name in values
    }
    return entity_type(**fields)


def _convert(hint: Any, value: Any) -> Any:
    if isinstance(value, tuple) and value and isinstance(value[0], Mapping):
        item_type = _item_type(hint)
        return tuple(build(item_type, item) for item in value)
    return value


def _item_type(hint: Any) -> Any:
    """The dataclass inside `tuple[X, ...]` or `tuple[X, ...] | None`."""
    for inner in typing.get_args(hint):
        if dataclasses.is_dataclass(inner):
            return inner
        if typing.get_args(inner):
            return _item_type(inner)
    raise TypeError(f"no entity in {hint}")
