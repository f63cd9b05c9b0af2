"""A record as described by one request: key, partition, headers, time, delay, trace.

By query                        By header
  key, key_base64                 Ottla-Key, Ottla-Key_base64
  partition, timestamp            Ottla-Partition, Ottla-Timestamp (milliseconds since 1970)
  header=name:value (repeated)    Ottla-Header-NAME: value
  deliver-after, deliver-at       Deliver-After, Deliver-At

`deliver-after` is in seconds, fractions allowed; `deliver-at` is in milliseconds since 1970 or an
ISO 8601 time. Both become the record header that share groups obey. `traceparent` and `tracestate`
(W3C trace context) become record headers.
"""

import base64
import math
import time
from datetime import datetime
from typing import Any, Final

import orjson
from starlette.requests import Request

from ottla.gateway.api.parameters import header, number, parameters, parse_number, text
from ottla.gateway.core.errors import Invalid
from ottla.gateway.core.partition_writer import Acks
from ottla.gateway.core.record_json import NewRecord, record_from_json
from ottla.gateway.services import Services
from ottla.records.builder import Headers
from ottla.records.deliver_at import DELIVER_AT

_PARTITION_MAX: Final = 2**31 - 1
_TIME_MS_MAX: Final = 2**63 - 1
_DELAY_S_MAX: Final = 366 * 24 * 3600
_HEADER_PREFIX: Final = b"ottla-header-"
_FIELDS: Final = {
    *("key", "key_base64", "value", "value_base64", "partition", "headers", "timestamp")
}
_TRACE_PARENT: Final = b"traceparent"
_TRACE_STATE: Final = b"tracestate"


def record_of(request: Request, value: bytes | None) -> NewRecord:
    if not parameters(request):
        return NewRecord(value, headers=_trace(request))
    return NewRecord(
        value,
        _key(request),
        number(request, "partition", maximum=_PARTITION_MAX),
        _own_headers(request) + common_headers(request),
        number(request, "timestamp", maximum=_TIME_MS_MAX, minimum=1),
    )


def record_of_json(shown: Any) -> NewRecord:
    """One record of a batch or stream. Raises Invalid, also for unknown fields."""
    if type(shown) is dict and len(shown) == 1 and type(value := shown.get("value")) is str:
        return NewRecord(utf8(value))  # Fast path for the most common record.
    try:
        record = record_from_json(shown)
    except ValueError as error:
        raise Invalid(str(error)) from None
    if unknown := shown.keys() - _FIELDS:
        known = ", ".join(sorted(_FIELDS))
        raise Invalid(f"a record has no {', '.join(sorted(unknown))}; it has {known}")
    if "value" not in shown and "value_base64" not in shown:
        raise Invalid("a record needs a value, or value_base64; null is a tombstone")
    if record.timestamp_ms == 0:
        raise Invalid("timestamp is more than 0")
    return record


def records_of_text(body: bytes) -> list[NewRecord] | None:
    """Records of an array in which each has a text value and at most a key; None for anything else.

    This is the most common kind of batch. The fast parser would change some other values.
    """
    try:
        items = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    found = []
    for item in items:
        if type(item) is not dict or type(value := item.get("value")) is not str:
            return None
        if len(item) == 1:
            found.append(NewRecord(value.encode()))
            continue
        if len(item) > 2 or type(key := item.get("key")) is not str:
            return None
        found.append(NewRecord(value.encode(), key.encode()))
    return found


def utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Invalid("text with half of a surrogate pair; send bytes in base64") from None


def with_headers(record: NewRecord, more: Headers) -> NewRecord:
    """The record with the headers in `more` whose names it lacks."""
    if not more:
        return record
    there = {name for name, _ in record.headers}
    missing = tuple(header for header in more if header[0] not in there)
    return record._replace(headers=record.headers + missing)


def common_headers(request: Request) -> Headers:
    """Headers that every record of a request gets: its trace and its delivery time."""
    deliver_at_ms = _deliver_at_ms(request)
    if deliver_at_ms is None:
        return _trace(request)
    return (*_trace(request), (DELIVER_AT, b"%d" % deliver_at_ms))


async def validate_delay(request: Request, services: Services, topic: str) -> None:
    """Refuse a delay that the brokers would ignore."""
    if text(request, "deliver-after") is not None or text(request, "deliver-at") is not None:
        await services.delays.validate(topic)


def acks_of(request: Request) -> Acks:
    value = text(request, "acks")
    if value is None:
        return Acks.ALL
    try:
        return Acks("all" if value == "-1" else value)
    except ValueError:
        raise Invalid("acks is all, 1 or 0") from None


def _trace(request: Request) -> Headers:
    parent = header(request, _TRACE_PARENT)
    if parent is None:
        return ()
    state = header(request, _TRACE_STATE)
    named: Headers = ((_TRACE_PARENT.decode(), parent),)
    return named if state is None else (*named, (_TRACE_STATE.decode(), state))


def _key(request: Request) -> bytes | None:
    in_base64 = text(request, "key_base64")
    key = text(request, "key")
    if in_base64 is not None:
        if key is not None:
            raise Invalid("a record has key or key_base64, not both")
        try:
            return base64.b64decode(in_base64, validate=True)
        except ValueError:
            raise Invalid("key_base64 is not base64") from None
    return None if key is None else utf8(key)


def _own_headers(request: Request) -> Headers:
    headers: list[tuple[str, bytes | None]] = []
    by_query = request.query_params.getlist("header") if request.scope["query_string"] else ()
    for item in by_query:
        name, colon, value = item.partition(":")
        if not colon or not name:
            raise Invalid("a header by query is header=name:value")
        headers.append((name, utf8(value)))
    for raw_name, raw_value in request.scope["headers"]:
        if raw_name.startswith(_HEADER_PREFIX) and len(raw_name) > len(_HEADER_PREFIX):
            headers.append((raw_name[len(_HEADER_PREFIX) :].decode("latin-1"), raw_value))
    return tuple(headers)


def _deliver_at_ms(request: Request) -> int | None:
    after = text(request, "deliver-after")
    at = text(request, "deliver-at")
    if after is not None and at is not None:
        raise Invalid("say deliver-after or deliver-at, not both")
    if after is not None:
        return time.time_ns() // 1_000_000 + math.ceil(_seconds(after) * 1000)
    return None if at is None else _time_ms(at)


def _seconds(value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= _DELAY_S_MAX:
        raise Invalid(f"deliver-after is in seconds, from 0 to {_DELAY_S_MAX}")
    return seconds


def _time_ms(value: str) -> int:
    if value.isdecimal():
        return parse_number(value, "deliver-at", maximum=_TIME_MS_MAX)
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise Invalid("deliver-at is in milliseconds since 1970, or a time with its time zone")
    return math.ceil(moment.timestamp() * 1000)
