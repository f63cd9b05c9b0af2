"""Avro values as Arrow columns: each value is one datum in binary encoding, without a header."""

import io
import json
import uuid
from typing import Any

import fastavro
import pyarrow.types as types

from pyspark_ottla.value_decoding import Convert, Decoded, decode_rows


class AvroDecoder:
    def __init__(self, schema: str, kind: Any) -> None:
        self._schema = fastavro.parse_schema(json.loads(schema))
        self._kind = kind
        self._convert = _converter(kind)

    def decode(self, values: Any) -> Decoded:
        return decode_rows(values, self._kind, self._parse)

    def _parse(self, value: bytes) -> Any:
        data = io.BytesIO(value)
        try:
            datum = fastavro.schemaless_reader(data, self._schema, None)
        except EOFError:
            raise ValueError("the value ends inside a datum") from None
        left = len(value) - data.tell()
        if left:
            raise ValueError(f"{left} bytes after the datum")
        return datum if self._convert is None else self._convert(datum)


def _converter(kind: Any) -> Convert | None:
    """For types that Arrow does not take as fastavro returns them (maps, UUIDs); else None."""
    if types.is_struct(kind):
        return _struct_converter(kind)
    if types.is_list(kind):
        item = _converter(kind.value_type)
        return None if item is None else _list_converter(item)
    if types.is_map(kind):
        return _map_converter(_converter(kind.item_type))
    if types.is_string(kind):
        return lambda value: str(value) if isinstance(value, uuid.UUID) else value
    return None


def _struct_converter(kind: Any) -> Convert | None:
    converters = {field.name: _converter(field.type) for field in kind}
    changed = {name: convert for name, convert in converters.items() if convert is not None}
    if not changed:
        return None

    def convert(value: Any) -> Any:
        if value is None:
            return None
        return value | {name: convert(value[name]) for name, convert in changed.items()}

    return convert


def _list_converter(item: Convert) -> Convert:
    return lambda value: None if value is None else [item(element) for element in value]


def _map_converter(item: Convert | None) -> Convert:
    def convert(value: Any) -> Any:
        if value is None:
            return None
        return [(key, item(element) if item else element) for key, element in value.items()]

    return convert
