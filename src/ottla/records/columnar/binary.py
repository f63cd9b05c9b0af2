"""Arrow arrays of byte strings that are somewhere in a buffer.

An Arrow array of byte strings is a buffer and the offsets between its items. With the start and the
end of each string as offsets, strings and the gaps between them alternate as items; filtering out
every second one leaves the strings, copied together by Arrow in one go.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ottla.records.columnar.columns import HEADERS_TYPE
from ottla.records.columnar.varints import Integers, Unusual, Words

_EVERY_SECOND = b"\x55"  # Bits from the lowest on: kept, dropped, kept, ...


def fixed_array(values: npt.NDArray[Any], kind: Any) -> Any:
    """The numbers, without a copy."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)], null_count=0)


def repeated_text(text: str, count: int) -> Any:
    """Like `pa.repeat` of a Python string, for which Arrow would first load pandas."""
    data = text.encode()
    edges = np.arange(count + 1, dtype=np.int32) * np.int32(len(data))
    buffers = [None, pa.py_buffer(edges), pa.py_buffer(data * count)]
    return pa.Array.from_buffers(pa.string(), count, buffers, null_count=0)


def binary_array(raw: Any, start: Integers, end: Integers, is_null: npt.NDArray[np.bool_]) -> Any:
    """The strings `raw[start:end]`, which follow one another, or null."""
    count = len(start)
    if not count:
        return pa.array([], pa.binary())
    edges = np.empty(2 * count, np.int32)
    edges[0::2] = start
    edges[1::2] = end
    items = 2 * count - 1
    strings_and_gaps = pa.Array.from_buffers(
        pa.binary(), items, [None, pa.py_buffer(edges), raw], null_count=0
    )
    strings = strings_and_gaps.filter(_mask(items))
    if not is_null.any():
        return strings
    _, offsets, data = strings.buffers()
    return pa.Array.from_buffers(pa.binary(), count, [_validity(~is_null), offsets, data])


def header_arrays(raw: Any, words: Words, position: Integers, end: Integers) -> Any:
    """The headers of records; `position` is that of their count, `end` that of the record."""
    counts, position = words.varints(position)
    if (counts < 0).any() or (counts > end - position).any():
        raise Unusual
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    names, values = _walk_headers(words, counts, offsets, position, end)
    name_array = _text_array(binary_array(raw, *names))
    items = pa.StructArray.from_arrays(
        [name_array, binary_array(raw, *values)], fields=list(HEADERS_TYPE.value_type)
    )
    validity = None if counts.all() else _validity(counts > 0)
    return pa.Array.from_buffers(
        HEADERS_TYPE, len(counts), [validity, pa.py_buffer(offsets)], children=[items]
    )


_Strings = tuple[Integers, Integers, npt.NDArray[np.bool_]]


def _walk_headers(
    words: Words,
    counts: Integers,
    offsets: npt.NDArray[np.int32],
    position: Integers,
    end: Integers,
) -> tuple[_Strings, _Strings]:
    """The bounds of all names and all values; the first header of every record, then the second."""
    total = int(offsets[-1])
    positions = np.empty((4, total), np.int64)
    is_null = np.zeros(total, np.bool_)
    rows = np.flatnonzero(counts)
    at = position[rows]
    if len(rows) != len(counts) and (position[counts == 0] != end[counts == 0]).any():
        raise Unusual
    index = 0
    while len(rows):
        name_size, name_start = words.varints(at)
        name_end = name_start + name_size
        value_size, value_start = words.varints(name_end)
        at = value_start + np.maximum(value_size, 0)
        if (name_size < 0).any() or (value_size < -1).any() or (at > end[rows]).any():
            raise Unusual
        item = offsets[rows] + index
        positions[:, item] = name_start, name_end, value_start, at
        is_null[item] = value_size < 0
        index += 1
        more = counts[rows] > index
        if (at[~more] != end[rows[~more]]).any():
            raise Unusual
        rows, at = rows[more], at[more]
    names = positions[0], positions[1], np.zeros(total, np.bool_)
    return names, (positions[2], positions[3], is_null)


def _text_array(names: Any) -> Any:
    """Like the Java client: bytes that are not UTF-8 become replacement characters."""
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([name.decode(errors="replace") for name in names.to_pylist()], pa.string())


def _mask(count: int) -> Any:
    bits = pa.py_buffer(_EVERY_SECOND * (count // 8 + 1))
    return pa.Array.from_buffers(pa.bool_(), count, [None, bits], null_count=0)


def _validity(is_valid: npt.NDArray[np.bool_]) -> Any:
    return pa.py_buffer(np.packbits(is_valid, bitorder="little"))
