"""Counts the error codes in a response, wherever they are.

The fields of an entity that lead to error codes are determined once per class, from its types.
"""

import dataclasses
import typing
from typing import Any, Final, NamedTuple

from ottla.network.durations import ApiCounters


class _Paths(NamedTuple):
    has_code: bool
    lists: tuple[str, ...]  # Fields whose entities have error codes.


_NO_ENTITY: Final = _Paths(False, ())
_known: Final[dict[Any, _Paths]] = {}  # By class.


def count_errors(entity: Any, api: ApiCounters) -> None:
    has_code, lists = _paths(type(entity))
    if has_code and entity.error_code:
        api.refuse(int(entity.error_code))
    for name in lists:
        for item in getattr(entity, name) or ():
            count_errors(item, api)


def _paths(entity: Any) -> _Paths:
    found = _known.get(entity)
    if found is None:
        found = _known[entity] = _find_paths(entity)
    return found


def _find_paths(entity: Any) -> _Paths:
    if not dataclasses.is_dataclass(entity):
        return _NO_ENTITY
    types = typing.get_type_hints(entity)
    names = [field.name for field in dataclasses.fields(entity)]
    lists = [name for name in names if any(any(_paths(item)) for item in _items(types[name]))]
    return _Paths("error_code" in names, tuple(lists))


def _items(annotation: Any) -> list[Any]:
    """The item classes of a list, which may be nullable."""
    if typing.get_origin(annotation) is tuple:
        return [typing.get_args(annotation)[0]]
    return [item for part in typing.get_args(annotation) for item in _items(part)]
