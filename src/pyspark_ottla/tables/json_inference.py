"""Infers the types of JSON values, as table columns.

A number is a bigint, or a double if any value has a fraction; objects are structs and arrays are
arrays. Incompatible types, and integers that are too large, become text, which holds any JSON as
written. A field that is always null has no type yet and is left out.
"""

import json
from collections.abc import Collection, Iterable
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    NullType,
    StringType,
    StructField,
    StructType,
)

_LONG_LIMIT = 1 << 63
_NUMBERS = (LongType, DoubleType)


def infer_fields(values: Iterable[bytes | None], known: Collection[str] = ()) -> StructType:
    """For objects, without the known fields; ignores values that are not objects.

    Merge the fields of all values, then call `complete`.
    """
    found: dict[str, DataType] = {}
    for value in values:
        for name, content in _fields_of(value).items():
            if name not in known:
                found[name] = merge_types(found.get(name, NullType()), _type_of(content))
    return StructType([StructField(name, kind) for name, kind in found.items()])


def _fields_of(value: bytes | None) -> dict[str, Any]:
    try:
        parsed = None if value is None else json.loads(value)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _type_of(value: Any) -> DataType:
    if value is None:
        return NullType()
    if isinstance(value, bool):
        return BooleanType()
    if isinstance(value, int):
        return LongType() if -_LONG_LIMIT <= value < _LONG_LIMIT else StringType()
    if isinstance(value, float):
        return DoubleType()
    if isinstance(value, list):
        item: DataType = NullType()
        for element in value:
            item = merge_types(item, _type_of(element))
        return ArrayType(item)
    if isinstance(value, dict):
        return StructType([StructField(name, _type_of(element)) for name, element in value.items()])
    return StringType()


def merge_types(left: DataType, right: DataType) -> DataType:
    """A type for the values of both."""
    if left == right or isinstance(right, NullType):
        return left
    if isinstance(left, NullType):
        return right
    if isinstance(left, _NUMBERS) and isinstance(right, _NUMBERS):
        return DoubleType()
    if isinstance(left, ArrayType) and isinstance(right, ArrayType):
        return ArrayType(merge_types(left.elementType, right.elementType))
    if isinstance(left, StructType) and isinstance(right, StructType):
        return merge_fields(left, right)
    return StringType()


def merge_fields(left: StructType, right: StructType) -> StructType:
    types = {field.name: field.dataType for field in left}
    for field in right:
        types[field.name] = merge_types(types.get(field.name, NullType()), field.dataType)
    return StructType([StructField(name, kind) for name, kind in types.items()])


def complete(schema: StructType) -> StructType:
    """Drop what has no type."""
    return StructType(
        [
            StructField(field.name, _complete(field.dataType))
            for field in schema
            if not isinstance(field.dataType, NullType)
        ]
    )


def _complete(kind: DataType) -> DataType:
    if isinstance(kind, ArrayType):
        return ArrayType(_complete(kind.elementType))
    if isinstance(kind, StructType):
        inner = complete(kind)
        return inner if len(inner) else StringType()  # Parquet has no struct without fields.
    return StringType() if isinstance(kind, NullType) else kind
