"""Parses metrics in OpenTelemetry's protobuf format, as clients push them (KIP-714).

Only numbers are read: gauges and sums, which is all that Kafka's clients send. A parser of a few
lines is enough for that, while the protobuf library would cost every broker some megabytes, and its
users a version that fits whatever else they have installed.
"""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from ottla.protocol.errors import ProtocolError

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_DOUBLE: Final = struct.Struct("<d")
_INTEGER: Final = struct.Struct("<q")
_VARINT_BYTES_MAX: Final = 10
_DELTA: Final = 1  # A value of aggregation_temporality.

Field = tuple[int, int | memoryview]  # A field number and its value; fixed-size ones are views.


class Sample(NamedTuple):
    name: str
    attributes: tuple[tuple[str, str], ...]
    value: float
    is_monotonic: bool  # A counter; otherwise it goes up and down.
    is_delta: bool  # The increase since the last push.


def read_samples(data: bytes | bytearray | memoryview) -> Iterator[Sample]:
    """The samples in a MetricsData message. Raises ProtocolError."""
    try:
        for resource in _messages(memoryview(data), 1):
            for scope in _messages(resource, 2):
                for metric in _messages(scope, 2):
                    yield from _metric(metric)
    except (struct.error, UnicodeDecodeError) as error:
        raise ProtocolError(f"the metrics cannot be read: {error}") from None


def _metric(metric: memoryview) -> Iterator[Sample]:
    name = ""
    for number, value in _fields(metric):
        if number == 1:
            name = _text(value)
        elif number in (5, 7):  # A gauge; a sum.
            yield from _points(name, _view(value))


def _points(name: str, aggregation: memoryview) -> Iterator[Sample]:
    fields = list(_fields(aggregation))
    flags = {number: value for number, value in fields if number != 1}
    is_delta, is_monotonic = flags.get(2) == _DELTA, bool(flags.get(3, False))
    for number, point in fields:
        if number != 1:
            continue
        attributes: list[tuple[str, str]] = []
        amount: float | None = None
        for part, value in _fields(_view(point)):
            if part == 7:
                attributes.append(_attribute(_view(value)))
            elif part == 4:
                (amount,) = _DOUBLE.unpack(_view(value))
            elif part == 6:
                (amount,) = _INTEGER.unpack(_view(value))
        if amount is not None:
            yield Sample(name, tuple(sorted(attributes)), amount, is_monotonic, is_delta)


def _attribute(pair: memoryview) -> tuple[str, str]:
    key, text = "", ""
    for number, value in _fields(pair):
        if number == 1:
            key = _text(value)
        elif number == 2:
            for kind, content in _fields(_view(value)):
                if kind in (1, 2, 3):  # Text, a boolean, an integer.
                    text = _text(content) if kind == 1 else str(content)
    return key, text


def _messages(message: memoryview, wanted: int) -> Iterator[memoryview]:
    for number, value in _fields(message):
        if number == wanted:
            yield _view(value)


def _fields(message: memoryview) -> Iterator[Field]:
    position, end = 0, len(message)
    while position < end:
        tag, position = _varint(message, position)
        kind = tag & 7
        if kind == _VARINT:
            value, position = _varint(message, position)
            yield tag >> 3, value
            continue
        size = 8 if kind == _FIXED64 else 4
        if kind == _BYTES:
            size, position = _varint(message, position)
        elif kind not in (_FIXED64, _FIXED32):
            raise ProtocolError(f"the metrics have a field of the unknown kind {kind}")
        if size > end - position:
            raise ProtocolError("the metrics end in the middle of a field")
        yield tag >> 3, message[position : position + size]
        position += size


def _varint(message: memoryview, position: int) -> tuple[int, int]:
    value = 0
    for index, byte in enumerate(message[position : position + _VARINT_BYTES_MAX]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, position + index + 1
    raise ProtocolError("the metrics have a number without an end")


def _view(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise ProtocolError("the metrics have a number where a message belongs")
    return value


def _text(value: int | memoryview) -> str:
    return str(_view(value), "utf-8")
