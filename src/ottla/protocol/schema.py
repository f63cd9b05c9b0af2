"""The wire schema of dataclasses that describe messages.

These are kio's generated entities, and our own in the same style: a frozen dataclass whose fields
have `metadata={"kafka_type": ...}` (none for a nested entity) and optionally `"tag"`, and whose
class has `__version__` and `__flexible__`.
"""

import datetime as dt
import functools
from dataclasses import MISSING, fields, is_dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin

from ottla.protocol.errors import ErrorCode
from ottla.protocol.lazy_dataclass import dataclass

ENTITY = "entity"

_ZERO_VALUES: dict[str, object] = {
    "bool": False,
    "float64": 0.0,
    "string": "",
    "bytes": b"",
    "records": b"",
    "uuid": None,
    "error_code": ErrorCode.none,
    "timedelta_i32": dt.timedelta(0),
    "timedelta_i64": dt.timedelta(0),
    "datetime_i64": dt.datetime.fromtimestamp(0, dt.UTC),
}


@dataclass(frozen=True, slots=True)
class FieldSchema:
    name: str
    kafka_type: str  # ENTITY for a nested entity.
    entity: type | None
    is_array: bool
    is_nullable: bool  # The field as a whole, so the array and not its items.
    tag: int | None
    default: object  # If the schema has none: zero, empty, or null if allowed.


@functools.cache
def schema_of(entity_type: type) -> tuple[FieldSchema, ...]:
    """In wire order, with tagged fields last, sorted."""
    schemas = [_field_schema(field) for field in fields(entity_type)]
    tagged = [schema for schema in schemas if schema.tag is not None]
    tagged.sort(key=lambda schema: schema.tag or 0)
    return (*(schema for schema in schemas if schema.tag is None), *tagged)


def _field_schema(field: Any) -> FieldSchema:
    inner, is_nullable = _without_none(field.type)
    is_array = get_origin(inner) is tuple
    if is_array:
        inner, _ = _without_none(get_args(inner)[0])
    entity: type | None = inner if isinstance(inner, type) and is_dataclass(inner) else None
    kafka_type = ENTITY if entity else field.metadata["kafka_type"]
    default = field.default
    if default is MISSING:
        default = _implicit_default(kafka_type, entity, is_array, is_nullable)
    return FieldSchema(
        name=field.name,
        kafka_type=kafka_type,
        entity=entity,
        is_array=is_array,
        is_nullable=is_nullable,
        tag=field.metadata.get("tag"),
        default=default,
    )


def _without_none(annotation: Any) -> tuple[Any, bool]:
    if get_origin(annotation) not in (UnionType, Union):
        return annotation, False
    (inner,) = (item for item in get_args(annotation) if item is not type(None))
    return inner, True


def _implicit_default(
    kafka_type: str, entity: type | None, is_array: bool, is_nullable: bool
) -> object:
    if is_nullable:
        return None
    if is_array:
        return ()
    if entity is not None:
        return entity(**{schema.name: schema.default for schema in schema_of(entity)})
    return _ZERO_VALUES.get(kafka_type, 0)
