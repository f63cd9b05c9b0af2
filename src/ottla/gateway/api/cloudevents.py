"""CloudEvents 1.0 over HTTP, as records of the Kafka binding.

binary      ce-* headers become ce_* record headers, the content type a record header, the body the
            value
structured  application/cloudevents+json: the event itself is the value
batch       application/cloudevents-batch+json: each event is a record in structured mode

The extension `partitionkey` is the record's key.
"""

import json
from typing import Any, Final
from urllib.parse import unquote

from starlette.requests import Request

from ottla.gateway.api.new_records import utf8
from ottla.gateway.core.errors import Invalid
from ottla.gateway.core.record_json import NewRecord
from ottla.records.builder import Headers

STRUCTURED: Final = "application/cloudevents+json"
BATCH: Final = "application/cloudevents-batch+json"

_SPECVERSION: Final = "1.0"
_REQUIRED: Final = ("id", "source", "specversion", "type")
_KEY: Final = "partitionkey"
_CONTENT_TYPE: Final = "content-type"
_STRUCTURED_HEADERS: Final[Headers] = ((_CONTENT_TYPE, f"{STRUCTURED}; charset=UTF-8".encode()),)


def is_binary(request: Request) -> bool:
    return "ce-specversion" in request.headers


def binary_event(request: Request, record: NewRecord) -> NewRecord:
    """The record with the event's attributes from the headers."""
    attributes = {
        name.removeprefix("ce-"): unquote(value)
        for name, value in request.headers.items()
        if name.startswith("ce-")
    }
    _validate(attributes)
    headers = [(f"ce_{name}", utf8(value)) for name, value in attributes.items()]
    if content_type := request.headers.get(_CONTENT_TYPE):
        headers.append((_CONTENT_TYPE, utf8(content_type)))
    return _with_key(record._replace(headers=record.headers + tuple(headers)), attributes)


def structured_event(event: Any, record: NewRecord) -> NewRecord:
    if not isinstance(event, dict):
        raise Invalid("a CloudEvent is a JSON object")
    _validate(event)
    value = utf8(json.dumps(event, ensure_ascii=False, separators=(",", ":")))
    record = record._replace(value=value, headers=record.headers + _STRUCTURED_HEADERS)
    return _with_key(record, event)


def _validate(attributes: dict[str, Any]) -> None:
    for name in _REQUIRED:
        if not isinstance(attributes.get(name), str) or not attributes[name]:
            raise Invalid(f"a CloudEvent needs {name}")
    if attributes["specversion"] != _SPECVERSION:
        raise Invalid(f"specversion is {_SPECVERSION}")


def _with_key(record: NewRecord, attributes: dict[str, Any]) -> NewRecord:
    key = attributes.get(_KEY)
    if record.key is not None or not isinstance(key, str):
        return record
    return record._replace(key=utf8(key))
