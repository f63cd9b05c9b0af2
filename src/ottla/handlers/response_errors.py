"""Counts the error codes in a response, wherever they are.

The fields of an entity that lead to error codes are determined once per class, from its types.
"""

import functools
from dataclasses import is_dataclass
from typing import Any, NamedTuple

from ottla.network.durations import ApiCounters
from ottla.protocol.schema import schema_of


class _Paths(NamedTuple):
    has_code: bool
    lists: tuple[str, ...]  # Fields whose entities have error codes.


def count_errors(entity: Any, api: ApiCounters) -> None:
    has_code, lists = _paths(entity.__class__)
    if has_code and entity.error_code:
        api.refuse(int(entity.error_code))
    for name in lists:
        for item in getattr(entity, name) or ():
            count_errors(item, api)


@functools.cache
def _paths(entity_type: type) -> _Paths:
    fields = schema_of(entity_type) if is_dataclass(entity_type) else ()
    lists = (
        field.name
        for field in fields
        if field.is_array and field.entity is not None and any(_paths(field.entity))
    )
    return _Paths(any(field.name == "error_code" for field in fields), tuple(lists))
