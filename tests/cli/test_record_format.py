import json

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, Message

from ottla.cli.errors import UsageError
from ottla.cli.record_format import TemplateFormat, render_json


def message(
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    headers: list[tuple[str, str | bytes | None]] | None = None,
) -> "Message[bytes, bytes]":
    return Message(
        topic="orders",
        partition=2,
        offset=7,
        key=key,
        value=value,
        headers=headers,
        timestamp=(TIMESTAMP_CREATE_TIME, 1700000000123),
    )


def test_every_field_of_a_template() -> None:
    template = "{topic}-{partition}@{offset} {timestamp} {key}={value} {headers}"
    rendered = TemplateFormat(template).render(message(headers=[("a", b"1"), ("b", None)]))
    assert rendered == b"orders-2@7 2023-11-14T22:13:20.123Z k=v a=1,b=null\n"


def test_escapes_and_literal_braces() -> None:
    assert TemplateFormat(r"{{\t{value}\n").render(message()) == b"{\tv\n\n"


def test_bytes_go_out_as_they_are() -> None:
    assert TemplateFormat("{value}").render(message(value=b"\xff\x00")) == b"\xff\x00\n"


def test_null_and_empty_differ() -> None:
    rendered = TemplateFormat("{key}|{value}").render(message(key=None, value=b""))
    assert rendered == b"null|\n"


@pytest.mark.parametrize("template", ["{nope}", "{key.real}", "{offset:>5}", "{key!r}", "{", "}"])
def test_a_template_that_cannot_be_rendered_is_refused(template: str) -> None:
    with pytest.raises(UsageError, match="--format"):
        TemplateFormat(template)


def test_json() -> None:
    rendered = render_json(message(value=None, headers=[("a", b"\xff")]))
    assert json.loads(rendered) == {
        "topic": "orders",
        "partition": 2,
        "offset": 7,
        "timestamp": 1700000000123,
        "key": "k",
        "value": None,
        "headers": [["a", {"base64": "/w=="}]],
    }
