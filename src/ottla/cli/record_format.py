"""How `ottla consume` prints a record: by a template, or as one line of JSON."""

import base64
import datetime as dt
import json
import string
from typing import Any

from confluent_kafka import Message

from ottla.cli.errors import UsageError

FIELDS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
NULL = b"null"  # As Kafka's console consumer prints an absent key or value.

_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\0": "\0"}


class TemplateFormat:
    """Keys and values go out as the bytes that they are, so a template is rendered to bytes."""

    def __init__(self, template: str) -> None:
        for escape, character in _ESCAPES.items():
            template = template.replace(escape, character)
        self._parts: list[tuple[bytes, str | None]] = []  # Literal text, then a field.
        try:
            parsed = list(string.Formatter().parse(template))
        except ValueError as error:
            raise UsageError(f"--format {template!r}: {error}") from None
        for literal, field, specification, conversion in parsed:
            if field is not None and (field not in FIELDS or specification or conversion):
                raise UsageError(f"--format has no field {{{field}}}; it has {', '.join(FIELDS)}")
            self._parts.append((literal.encode(), field))

    def render(self, message: "Message[Any, Any]") -> bytes:
        rendered = bytearray()
        for literal, field in self._parts:
            rendered += literal
            if field is not None:
                rendered += _field_bytes(message, field)
        return bytes(rendered + b"\n")


def render_json(message: "Message[Any, Any]") -> bytes:
    """Bytes that are not UTF-8 are written as {"base64": ...}."""
    document = {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": message.timestamp()[1],
        "key": json_bytes(message.key()),
        "value": json_bytes(message.value()),
        "headers": [[name, json_bytes(value)] for name, value in headers_of(message)],
    }
    return json.dumps(document, ensure_ascii=False).encode() + b"\n"


def headers_of(message: "Message[Any, Any]") -> list[tuple[str, bytes | None]]:
    """Headers in their order; librdkafka says None when there are none."""
    return list(message.headers() or ())  # type: ignore[arg-type]


def _field_bytes(message: "Message[Any, Any]", field: str) -> bytes:
    if field in ("key", "value"):
        content = message.key() if field == "key" else message.value()
        return NULL if content is None else content
    if field == "headers":
        return b",".join(
            name.encode() + b"=" + (NULL if value is None else value)
            for name, value in headers_of(message)
        )
    if field == "timestamp":
        return iso_timestamp(message.timestamp()[1]).encode()
    return str(getattr(message, field)()).encode()


def iso_timestamp(timestamp_ms: int) -> str:
    if timestamp_ms < 0:
        return "-"
    moment = dt.datetime.fromtimestamp(timestamp_ms / 1000, dt.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def json_bytes(content: bytes | None) -> object:
    if content is None:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}
