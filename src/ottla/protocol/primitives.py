"""The wire format of fixed-size values, and their Python types.

Without a listed converter, `struct` returns and accepts the value itself.
"""

import datetime as dt
from collections.abc import Callable
from typing import Any

from ottla.protocol.errors import ErrorCode, ProtocolError
from ottla.protocol.schema import FieldSchema
from ottla.protocol.wire_primitives import decoded_uuids, uuid_bytes

FIXED_SIZE = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
    "error_code": "h",
    "timedelta_i32": "i",
    "timedelta_i64": "q",
    "datetime_i64": "q",
}


def has_fixed_size(schema: FieldSchema) -> bool:
    return schema.kafka_type in FIXED_SIZE and not schema.is_array


_EPOCH = dt.datetime.fromtimestamp(0, dt.UTC)
_MILLISECOND = dt.timedelta(milliseconds=1)
_MILLISECONDS_MAX = (dt.timedelta.max - dt.timedelta(days=1)) // _MILLISECOND
_MILLISECONDS_MIN = dt.timedelta.min // _MILLISECOND
_ERROR_CODES = {int(code): code for code in ErrorCode}
_NULL_TIME = -1


def _to_error_code(code: int) -> ErrorCode:
    """A code from a newer Kafka is an unknown error, as for Kafka's own clients."""
    return _ERROR_CODES.get(code, ErrorCode.unknown_server_error)


def _to_timedelta(milliseconds: int) -> dt.timedelta:
    """Out-of-range times (clients use 2^63 - 1 for "forever") become the longest duration."""
    bounded = min(max(milliseconds, _MILLISECONDS_MIN), _MILLISECONDS_MAX)
    return dt.timedelta(milliseconds=bounded)


def _to_datetime(milliseconds: int) -> dt.datetime:
    """Kafka uses -1 for no time, even where the schema has no null for it."""
    if milliseconds < _NULL_TIME:
        raise ProtocolError(f"{milliseconds} where a time must be")
    return _EPOCH + dt.timedelta(milliseconds=milliseconds)


def _to_nullable_datetime(milliseconds: int) -> dt.datetime | None:
    return None if milliseconds == _NULL_TIME else _to_datetime(milliseconds)


# By kafka_type and nullability.
FROM_WIRE: dict[tuple[str, bool], Callable[[Any], Any]] = {
    ("uuid", False): decoded_uuids.__getitem__,
    ("uuid", True): decoded_uuids.__getitem__,
    ("error_code", False): _to_error_code,
    ("timedelta_i32", False): _to_timedelta,
    ("timedelta_i64", False): _to_timedelta,
    ("datetime_i64", False): _to_datetime,
    ("datetime_i64", True): _to_nullable_datetime,
}


def _from_timedelta(value: dt.timedelta) -> int:
    return round(value / _MILLISECOND)


def _from_datetime(value: dt.datetime | None) -> int:
    return _NULL_TIME if value is None else round((value - _EPOCH) / _MILLISECOND)


TO_WIRE: dict[str, Callable[[Any], Any]] = {
    "uuid": uuid_bytes,
    "timedelta_i32": _from_timedelta,
    "timedelta_i64": _from_timedelta,
    "datetime_i64": _from_datetime,
}
