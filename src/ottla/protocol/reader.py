"""Parses entities from bytes that a peer sent.

Any bytes whatsoever give an entity or a ProtocolError: every length is checked against the
remaining bytes before anything is allocated, and the number of array items in one message is
limited. (kio's own reader trusts lengths, and a large one ends the process.) Unknown tagged fields
are skipped, as KIP-482 requires.

A message can be read directly into the entity of another version: fields are matched by name, and
missing ones get their defaults.
"""

import functools
import struct
from collections.abc import Callable
from dataclasses import fields
from itertools import groupby
from typing import Any, TypeVar, cast

from ottla.protocol.errors import ProtocolError
from ottla.protocol.message_shapes import Values, shape_of
from ottla.protocol.primitives import FIXED_SIZE, FROM_WIRE, has_fixed_size
from ottla.protocol.schema import ENTITY, FieldSchema, schema_of
from ottla.protocol.wire_primitives import (
    ITEMS_MAX,
    MALFORMED,
    read_compact_string,
    read_int32,
    read_legacy_string,
    read_tags,
    read_uvarint,
)

E = TypeVar("E")

Buffer = bytes | bytearray | memoryview


class Cursor:
    __slots__ = ("frame", "in_place", "items_left", "position")

    def __init__(self, frame: memoryview, position: int, in_place: bool = False) -> None:
        self.frame = frame
        self.position = position
        self.in_place = in_place
        self.items_left = ITEMS_MAX


Read = Callable[[Cursor], Any]
Step = Callable[[Cursor, Values], None]


def read_entity(entity_type: type[E], frame: Buffer, position: int = 0) -> tuple[E, int]:
    """The entity that starts at `position`, and the position after it."""
    return read_lifted(entity_type, entity_type, frame, position)


def read_lifted(
    wire: type, target: type[E], frame: Buffer, position: int = 0, *, in_place: bool = False
) -> tuple[E, int]:
    """Like `read_entity`, from the layout of `wire`; `target` is the same message's newest type.

    With `in_place`, records are views of the frame and not copies.
    """
    cursor = Cursor(memoryview(frame), position, in_place)
    read: Read = _entity_reader(wire, cast("type", target))
    try:
        entity = read(cursor)
    except (*MALFORMED, OverflowError) as error:
        raise ProtocolError(f"not a {wire.__name__}: {error}") from None
    return entity, cursor.position


@functools.cache
def _entity_reader(wire: type, target: type) -> Read:
    """Compiled once per pair of types."""
    schemas = schema_of(wire)
    flexible: bool = wire.__flexible__  # type: ignore[attr-defined]
    target_types = {schema.name: schema.entity for schema in schema_of(target)}
    steps = _steps([schema for schema in schemas if schema.tag is None], flexible, target_types)
    if flexible:
        tagged = [schema for schema in schemas if schema.tag is not None]
        steps.append(_tags_step(tagged, target_types))
    return _build(wire, target, steps)


def _build(wire: type, target: type, steps: list[Step]) -> Read:
    shape = None if target is wire else shape_of(wire)
    version: int = wire.__version__  # type: ignore[attr-defined]
    wire_names = {field.name for field in fields(wire)}
    target_schemas = schema_of(target)
    defaults = {
        schema.name: schema.default
        for schema in target_schemas
        if schema.name not in wire_names or schema.tag is not None
    }
    surplus = wire_names - {schema.name for schema in target_schemas}

    def read(cursor: Cursor) -> Any:
        values = defaults.copy()
        for step in steps:
            step(cursor, values)
        if shape is not None:
            shape.lift(values, version)
        for name in surplus:
            values.pop(name, None)
        return target(**values)

    return read


def _steps(
    schemas: list[FieldSchema], flexible: bool, target_types: dict[str, type | None]
) -> list[Step]:
    """Adjacent fixed-size fields are unpacked together."""
    steps: list[Step] = []
    for is_fixed, run in groupby(schemas, has_fixed_size):
        if is_fixed:
            steps.append(_fixed_step(list(run)))
        else:
            steps += [
                _step(schema.name, _field_reader(schema, flexible, target_types)) for schema in run
            ]
    return steps


def _step(name: str, read: Read) -> Step:
    def step(cursor: Cursor, values: Values) -> None:
        values[name] = read(cursor)

    return step


def _fixed_step(schemas: list[FieldSchema]) -> Step:
    packed = struct.Struct(">" + "".join(FIXED_SIZE[schema.kafka_type] for schema in schemas))
    unpack, size = packed.unpack_from, packed.size
    names = tuple(schema.name for schema in schemas)
    converted = [
        (schema.name, FROM_WIRE[schema.kafka_type, schema.is_nullable])
        for schema in schemas
        if (schema.kafka_type, schema.is_nullable) in FROM_WIRE
    ]

    def step(cursor: Cursor, values: Values) -> None:
        values.update(zip(names, unpack(cursor.frame, cursor.position), strict=True))
        cursor.position += size
        for name, convert in converted:
            values[name] = convert(values[name])

    return step


def _tags_step(schemas: list[FieldSchema], target_types: dict[str, type | None]) -> Step:
    readers = {
        schema.tag: (schema.name, _field_reader(schema, True, target_types)) for schema in schemas
    }

    def step(cursor: Cursor, values: Values) -> None:
        if not cursor.frame[cursor.position]:
            cursor.position += 1
            return
        tags, after = read_tags(cursor.frame, cursor.position)
        for tag, start, end in tags:
            if tag not in readers:
                continue
            name, read = readers[tag]
            cursor.position = start
            values[name] = read(cursor)
            if cursor.position != end:
                raise ProtocolError(f"tagged field {tag} is not as long as it says")
        cursor.position = after

    return step


def _field_reader(
    schema: FieldSchema, flexible: bool, target_types: dict[str, type | None]
) -> Read:
    if schema.kafka_type == ENTITY:
        assert schema.entity is not None
        read = _entity_reader(schema.entity, target_types.get(schema.name) or schema.entity)
        if schema.is_nullable and not schema.is_array:
            return _nullable_entity_reader(read)
    elif schema.kafka_type in FIXED_SIZE:
        read = _fixed_reader(schema)
    else:
        nullable = (schema.is_nullable or schema.tag is not None) and not schema.is_array
        read = _bytes_reader(schema.kafka_type, flexible, nullable)
    return _array_reader(read, flexible, schema.is_nullable) if schema.is_array else read


def _fixed_reader(schema: FieldSchema) -> Read:
    packed = struct.Struct(">" + FIXED_SIZE[schema.kafka_type])
    unpack, size = packed.unpack_from, packed.size
    nullable = schema.is_nullable and not schema.is_array
    convert = FROM_WIRE.get((schema.kafka_type, nullable))

    def read(cursor: Cursor) -> Any:
        (value,) = unpack(cursor.frame, cursor.position)
        cursor.position += size
        return convert(value) if convert else value

    return read


def _nullable_entity_reader(read: Read) -> Read:
    def read_nullable(cursor: Cursor) -> Any:
        marker = cursor.frame[cursor.position]
        cursor.position += 1
        if marker == _NULL_ENTITY:
            return None
        if marker != 1:
            raise ProtocolError(f"{marker} where an entity or null must be")
        return read(cursor)

    return read_nullable


_NULL_ENTITY = 0xFF


def _array_reader(read_item: Read, flexible: bool, nullable: bool) -> Read:
    def read(cursor: Cursor) -> Any:
        if flexible:
            count, cursor.position = read_uvarint(cursor.frame, cursor.position)
            count -= 1
        else:
            (count,) = read_int32(cursor.frame, cursor.position)
            cursor.position += 4
        if count < 0:
            _validate_null(nullable, count)
            return None
        left = len(cursor.frame) - cursor.position
        cursor.items_left -= count
        if count > left or cursor.items_left < 0:
            raise ProtocolError(f"an array of {count} items in {left} bytes")
        return tuple([read_item(cursor) for _ in range(count)])

    return read


def _validate_null(nullable: bool, length: int) -> None:
    if length != -1 or not nullable:
        raise ProtocolError(f"length {length} where there must be a value")


def _bytes_reader(kafka_type: str, flexible: bool, nullable: bool) -> Read:
    if kafka_type == "string":
        return _string_reader(read_compact_string if flexible else read_legacy_string, nullable)

    is_records = kafka_type == "records"

    def read(cursor: Cursor) -> bytes | memoryview | None:
        if flexible:
            size, start = read_uvarint(cursor.frame, cursor.position)
            size -= 1
        else:
            (size,) = read_int32(cursor.frame, cursor.position)
            start = cursor.position + 4
        if size < 0:
            cursor.position = start
            _validate_null(nullable, size)
            return None
        end = start + size
        if end > len(cursor.frame):
            raise ProtocolError(f"{size} bytes reach past the frame")
        cursor.position = end
        content = cursor.frame[start:end]
        return content if is_records and cursor.in_place else bytes(content)

    return read


def _string_reader(
    read_string: Callable[[memoryview, int], tuple[str | None, int]], nullable: bool
) -> Read:
    def read(cursor: Cursor) -> str | None:
        text, cursor.position = read_string(cursor.frame, cursor.position)
        if text is None and not nullable:
            raise ProtocolError("null where a string must be")
        return text

    return read
