"""JSON values as Arrow columns.

Arrow reads plain types, many values at once. What it cannot read, and all other types (times,
decimals, bytes, maps), is converted value by value.

A missing field is null, a field unknown to the schema is dropped. Strings accept anything, as its
JSON text; times and dates are ISO 8601, in UTC if they have no zone; bytes are base64.
"""

import base64
import datetime as dt
import decimal
import io
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json
import pyarrow.types as types

from pyspark_ottla.value_decoding import Convert, Decoded, decode_rows

_NEWLINE = b"\n"


class JsonDecoder:
    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._is_plain = types.is_struct(kind) and _is_plain(kind)
        self._convert = _converter(kind)

    def decode(self, values: Any) -> Decoded:
        found = self._decode_at_once(values) if self._is_plain else None
        if found is not None:
            return Decoded(found, {})
        return decode_rows(values, self._kind, lambda value: self._convert(json.loads(value)))

    def _decode_at_once(self, values: Any) -> Any:
        """None if the values are not all plain objects of the type.

        Arrow reads concatenated objects. Each value starts and ends with a brace, so a truncated
        one cannot continue in the next, and if there are as many objects as values, each value is
        one object.
        """
        present = values.drop_null()
        if not len(present) or not _are_in_braces(present):
            return None
        lines = pa.ListArray.from_arrays(pa.array([0, len(present)], pa.int32()), present)
        data = pa.compute.binary_join(lines, _NEWLINE)[0].as_buffer()
        try:
            present.cast(pa.string())  # Arrow's JSON reader does not validate UTF-8.
            table = pyarrow.json.read_json(
                io.BytesIO(data),
                pyarrow.json.ReadOptions(use_threads=False, block_size=data.size + 1),
                pyarrow.json.ParseOptions(
                    explicit_schema=pa.schema(list(self._kind)),
                    unexpected_field_behavior="ignore",
                ),
            )
        except pa.ArrowInvalid:
            return None
        if len(table) != len(present):
            return None
        columns = [column.combine_chunks() for column in table.columns]
        objects = pa.StructArray.from_arrays(columns, fields=list(self._kind))
        return objects if len(present) == len(values) else _spread(objects, values)


def _are_in_braces(present: Any) -> bool:
    edges = np.frombuffer(present.buffers()[1], np.int32)[
        present.offset : present.offset + len(present) + 1
    ]
    if (edges[1:] == edges[:-1]).any():
        return False
    data = np.frombuffer(present.buffers()[2], np.uint8)
    begin, end = data[edges[:-1]] == ord("{"), data[edges[1:] - 1] == ord("}")
    return bool(begin.all() and end.all())


def _spread(objects: Any, values: Any) -> Any:
    """Place the objects in the rows of the non-null values."""
    is_valid = values.is_valid().to_numpy(zero_copy_only=False)
    indexes = np.cumsum(is_valid) - 1
    return objects.take(pa.array(indexes, pa.int64(), mask=~is_valid))


def _is_plain(kind: Any) -> bool:
    """Whether Arrow reads the type with the same result as the converters below."""
    if types.is_struct(kind):
        return all(_is_plain(field.type) for field in kind)
    if types.is_list(kind):
        return _is_plain(kind.value_type)
    return bool(
        types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_string(kind)
    )


def _converter(kind: Any) -> Convert:
    """A function from a value of the json module to one that Arrow accepts for the type."""
    convert = _not_null_converter(kind)
    return lambda value: None if value is None else convert(value)


def _not_null_converter(kind: Any) -> Convert:
    if types.is_struct(kind):
        return _struct_converter(kind)
    if types.is_list(kind):
        item = _converter(kind.value_type)
        return lambda value: [item(element) for element in _expect(list, value)]
    if types.is_map(kind):
        item = _converter(kind.item_type)
        return lambda value: [(key, item(element)) for key, element in _expect(dict, value).items()]
    if types.is_integer(kind):
        return _integer_converter(kind)
    if types.is_decimal(kind):
        return _decimal_converter(kind)
    if types.is_timestamp(kind):
        return _timestamp if kind.tz else _local_time
    for is_kind, convert in _CONVERTERS:
        if is_kind(kind):
            return convert
    raise TypeError(f"JSON has no values of type {kind}")


def _expect(kind: Any, value: Any) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{value!r:.100} where {_NAMES[kind]} must be")
    return value


_NAMES = {
    list: "an array",
    dict: "an object",
    bool: "true or false",
    int: "a whole number",
    (int, float): "a number",
    str: "a text",
}


def _struct_converter(kind: Any) -> Convert:
    fields = [(field.name, _converter(field.type)) for field in kind]

    def convert(value: Any) -> dict[str, Any]:
        _expect(dict, value)
        found = {}
        for name, item in fields:
            try:
                found[name] = item(value.get(name))
            except (ValueError, TypeError, LookupError, ArithmeticError) as error:
                raise ValueError(f"{name}: {error}") from error
        return found

    return convert


def _integer_converter(kind: Any) -> Convert:
    limit = 1 << (kind.bit_width - 1)

    def convert(value: Any) -> int:
        number: int = _expect(int, value)
        if not -limit <= number < limit:
            raise ValueError(f"{number} is too large for {kind}")
        return number

    return convert


def _decimal_converter(kind: Any) -> Convert:
    step = decimal.Decimal(1).scaleb(-kind.scale)
    context = decimal.Context(prec=kind.precision)

    def convert(value: Any) -> decimal.Decimal:
        if not isinstance(value, str):
            _expect((int, float), value)
        return decimal.Decimal(str(value)).quantize(step, context=context)

    return convert


def _timestamp(value: Any) -> dt.datetime:
    time = dt.datetime.fromisoformat(_expect(str, value))
    return time.replace(tzinfo=dt.UTC) if time.tzinfo is None else time


def _local_time(value: Any) -> dt.datetime:
    return dt.datetime.fromisoformat(_expect(str, value)).replace(tzinfo=None)


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    text.encode()  # What UTF-8 cannot encode is bad here, not later.
    return text


_CONVERTERS: list[tuple[Any, Convert]] = [
    (types.is_boolean, lambda value: _expect(bool, value)),
    (types.is_floating, lambda value: float(_expect((int, float), value))),
    (types.is_string, _text),
    (types.is_binary, lambda value: base64.b64decode(_expect(str, value), validate=True)),
    (types.is_date, lambda value: dt.date.fromisoformat(_expect(str, value))),
]
