"""Writes entities, in their own layout or that of another version of the same message.

Fields are matched by name: what the layout lacks is dropped, what the entity lacks gets its
default, and null becomes empty where the layout has no null.
"""

import functools
import struct
from collections.abc import Callable
from itertools import groupby
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

from ottla.protocol.message_shapes import shape_of
from ottla.protocol.primitives import FIXED_SIZE, TO_WIRE, has_fixed_size
from ottla.protocol.schema import ENTITY, FieldSchema, schema_of
from ottla.protocol.wire_primitives import Cache, compact_string, legacy_string, uvarint

Append = Callable[[bytearray, Any], None]
Step = Callable[[bytearray, Any], None]


def write_entity(out: bytearray, entity: Any, wire: type | None = None) -> None:
    """Append the bytes of the entity in the layout of `wire`, by default its own."""
    source: type = type(entity)
    _entity_writer(source, wire or source)(out, entity)


@functools.cache
def _entity_writer(source: type, wire: type) -> Append:
    """Compiled once per pair of types."""
    write = _layout_writer(wire)
    if source is wire:
        return write
    source_names = [schema.name for schema in schema_of(source)]
    missing = {
        schema.name: schema.default for schema in schema_of(wire) if schema.name not in source_names
    }
    shape = shape_of(wire)
    version: int = wire.__version__  # type: ignore[attr-defined]
    if shape is None and not missing:
        return write

    def write_reshaped(out: bytearray, entity: Any) -> None:
        values = missing | {name: getattr(entity, name) for name in source_names}
        if shape is not None:
            shape.project(values, version)
        write(out, SimpleNamespace(**values))

    return write_reshaped


@functools.cache
def _layout_writer(wire: type) -> Append:
    """Writes anything that has the attributes of `wire`."""
    schemas = schema_of(wire)
    flexible: bool = wire.__flexible__  # type: ignore[attr-defined]
    steps = _steps([schema for schema in schemas if schema.tag is None], flexible)
    if flexible:
        steps.append(_tags_step([schema for schema in schemas if schema.tag is not None]))

    def write(out: bytearray, entity: Any) -> None:
        for step in steps:
            step(out, entity)

    return write


def _steps(schemas: list[FieldSchema], flexible: bool) -> list[Step]:
    """Adjacent fixed-size fields are packed together."""
    steps: list[Step] = []
    for is_fixed, run in groupby(schemas, has_fixed_size):
        if is_fixed:
            steps.append(_fixed_step(list(run)))
        else:
            steps += [_step(schema.name, _field_writer(schema, flexible)) for schema in run]
    return steps


def _step(name: str, append: Append) -> Step:
    get = attrgetter(name)

    def step(out: bytearray, entity: Any) -> None:
        append(out, get(entity))

    return step


def _fixed_step(schemas: list[FieldSchema]) -> Step:
    pack = struct.Struct(">" + "".join(FIXED_SIZE[schema.kafka_type] for schema in schemas)).pack
    if len(schemas) == 1:
        return _step(schemas[0].name, _fixed_writer(schemas[0].kafka_type))
    get = attrgetter(*(schema.name for schema in schemas))
    converters = [TO_WIRE.get(schema.kafka_type) for schema in schemas]
    if not any(converters):

        def step(out: bytearray, entity: Any) -> None:
            out += pack(*get(entity))

        return step

    def converting_step(out: bytearray, entity: Any) -> None:
        values = zip(converters, get(entity), strict=True)
        out += pack(*[convert(value) if convert else value for convert, value in values])

    return converting_step


def _tags_step(schemas: list[FieldSchema]) -> Step:
    if not schemas:
        return _no_tags
    tagged = [(schema, _field_writer(schema, True)) for schema in schemas]

    def step(out: bytearray, entity: Any) -> None:
        count = 0
        encoded = bytearray()
        for schema, append in tagged:
            value = getattr(entity, schema.name, schema.default)
            if value == schema.default:
                continue
            data = bytearray()
            append(data, value)
            encoded += uvarint(schema.tag or 0) + uvarint(len(data)) + data
            count += 1
        out += uvarint(count) + encoded

    return step


def _no_tags(out: bytearray, _entity: Any) -> None:
    out.append(0)


def _field_writer(schema: FieldSchema, flexible: bool) -> Append:
    if schema.is_array:
        return _array_writer(schema, flexible)
    if schema.kafka_type == ENTITY:
        append = _nested_writer(schema.entity)
        return _nullable_entity_writer(append) if schema.is_nullable else append
    if schema.kafka_type in FIXED_SIZE:
        return _fixed_writer(schema.kafka_type)
    return _bytes_writer(schema.kafka_type, flexible, schema.is_nullable)


def _nested_writer(wire: type | None) -> Append:
    assert wire is not None
    writers: Cache[type, Append] = Cache(lambda source: _entity_writer(source, wire))

    def append(out: bytearray, entity: Any) -> None:
        writers[type(entity)](out, entity)

    return append


def _nullable_entity_writer(append: Append) -> Append:
    def append_nullable(out: bytearray, entity: Any) -> None:
        if entity is None:
            out.append(0xFF)
        else:
            out.append(1)
            append(out, entity)

    return append_nullable


def _fixed_writer(kafka_type: str) -> Append:
    pack = struct.Struct(">" + FIXED_SIZE[kafka_type]).pack
    convert = TO_WIRE.get(kafka_type)

    def append(out: bytearray, value: Any) -> None:
        out += pack(convert(value) if convert else value)

    return append


def _array_writer(schema: FieldSchema, flexible: bool) -> Append:
    append_items = _items_writer(schema, flexible)
    null = uvarint(0) if flexible else _pack_int32(-1)

    def append(out: bytearray, items: Any) -> None:
        if items is None and schema.is_nullable:
            out += null
            return
        items = items or ()
        out += uvarint(len(items) + 1) if flexible else _pack_int32(len(items))
        append_items(out, items)

    return append


def _items_writer(schema: FieldSchema, flexible: bool) -> Append:
    if schema.kafka_type in FIXED_SIZE and schema.kafka_type not in TO_WIRE:
        code = FIXED_SIZE[schema.kafka_type]

        def append_fixed(out: bytearray, items: Any) -> None:
            out += struct.pack(f">{len(items)}{code}", *items)

        return append_fixed
    if schema.kafka_type == ENTITY:
        append_item = _nested_writer(schema.entity)
    elif schema.kafka_type in FIXED_SIZE:
        append_item = _fixed_writer(schema.kafka_type)
    else:
        append_item = _bytes_writer(schema.kafka_type, flexible, False)

    def append(out: bytearray, items: Any) -> None:
        for item in items:
            append_item(out, item)

    return append


def _bytes_writer(kafka_type: str, flexible: bool, nullable: bool) -> Append:
    if kafka_type == "string":
        encode = compact_string if flexible else legacy_string

        def append_string(out: bytearray, text: str | None) -> None:
            out += encode("" if text is None and not nullable else text)

        return append_string

    null = uvarint(0) if flexible else _pack_int32(-1)

    def append(out: bytearray, data: bytes | None) -> None:
        if data is None and nullable:
            out += null
            return
        data = data or b""
        out += uvarint(len(data) + 1) if flexible else _pack_int32(len(data))
        out += data

    return append


_pack_int32 = struct.Struct(">i").pack
