"""Shared parts of value decoders: row by row, reporting the bad rows."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa


class Decoded(NamedTuple):
    values: Any  # An Arrow array with null where a value is null or bad.
    bad: dict[int, str]  # Reason by row.


Decode = Callable[[Any], Decoded]
Convert = Callable[[Any], Any]  # Raises ValueError, TypeError or KeyError on misfits.


def decode_rows(values: Any, kind: Any, parse: Convert) -> Decoded:
    """`parse` turns the bytes of one value into what Arrow accepts for the type."""
    rows: list[Any] = []
    bad: dict[int, str] = {}
    for index, value in enumerate(values.to_pylist()):
        try:
            rows.append(None if value is None else parse(value))
        except (ValueError, TypeError, LookupError, ArithmeticError) as error:
            rows.append(None)
            bad[index] = str(error)
    return Decoded(pa.array(rows, kind), bad)


def decode_text(values: Any) -> Decoded:
    """UTF-8."""
    try:
        return Decoded(values.cast(pa.string()), {})
    except pa.ArrowInvalid:
        return decode_rows(values, pa.string(), lambda value: value.decode())
