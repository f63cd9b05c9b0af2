import base64
from typing import Any

import pytest

from ottla.gateway.dialects.sqs.errors import SqsError
from ottla.gateway.dialects.sqs.message_attributes import (
    attributes_md5,
    bytes_of,
    from_headers,
    select,
    text_of,
    to_headers,
    validate_message_attributes,
)

TEXT = {"StringValue": "1493147359900", "DataType": "Number"}
BLOB = {"BinaryValue": base64.b64encode(b"\x00\xff").decode(), "DataType": "Binary.png"}


def test_the_md5_is_the_one_that_sqs_gives() -> None:
    assert attributes_md5({"timestamp": TEXT}) == "235c5c510d26fb653d073faed50ae77c"


def test_the_md5_does_not_depend_on_the_order() -> None:
    assert attributes_md5({"a": TEXT, "b": BLOB}) == attributes_md5({"b": BLOB, "a": TEXT})


def test_attributes_come_back_from_headers_with_their_types() -> None:
    attributes = {"plain": {"StringValue": "é", "DataType": "String"}, "n": TEXT, "b": BLOB}
    headers = to_headers(attributes)
    assert ("plain", "é".encode()) in headers
    assert from_headers(tuple(headers)) == attributes


def test_headers_of_kafka_producers_are_text_or_binary() -> None:
    headers = (("a", b"x"), ("b", b"\xff"), ("empty", b""), ("none", None), ("ottla-x", b"1"))
    assert from_headers(headers) == {
        "a": {"StringValue": "x", "DataType": "String"},
        "b": {"BinaryValue": "/w==", "DataType": "Binary"},
    }


def test_text_is_what_sqs_can_carry_ascii_or_not() -> None:
    for number in [*range(0x300), 0xD7FF, 0xE000, 0xFFFD, 0xFFFE, 0xFFFF, 0x10000]:
        is_text = number in (0x9, 0xA, 0xD) or (number >= 0x20 and number not in (0xFFFE, 0xFFFF))
        for text in (f"a{chr(number)}", f"ä{chr(number)}"):
            assert bytes_of(text) == (text.encode() if is_text else None), number
            assert text_of(text.encode()) == (text if is_text else None), number


def test_half_a_character_is_no_text() -> None:
    assert bytes_of("\ud800") is None
    assert text_of(b"a\xff") is None


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["All"], {"foo.a", "foo.b", "bar"}),
        ([".*"], {"foo.a", "foo.b", "bar"}),
        (["foo.*"], {"foo.a", "foo.b"}),
        (["bar", "nothing"], {"bar"}),
    ],
)
def test_receivers_select_by_name_and_prefix(names: list[str], found: set[str]) -> None:
    attributes: dict[str, Any] = dict.fromkeys(("foo.a", "foo.b", "bar"), TEXT)
    assert set(select(attributes, names)) == found


@pytest.mark.parametrize(
    "attributes",
    [
        {"AWS.x": TEXT},
        {"sqs-x": TEXT},
        {".a": TEXT},
        {"a..b": TEXT},
        {"a b": TEXT},
        {"a": {"StringValue": "1"}},
        {"a": {"StringValue": "1", "DataType": "Text"}},
        {"a": {"StringValue": "", "DataType": "String"}},
        {"a": {"StringValue": "x", "DataType": "Number"}},
        {"a": {"StringValue": "\x01", "DataType": "String"}},
        {"a": {"BinaryValue": "!", "DataType": "Binary"}},
        {"a": {"StringValue": "x", "DataType": "Binary"}},
        {f"a{number}": TEXT for number in range(11)},
    ],
)
def test_attributes_that_sqs_refuses_are_refused(attributes: dict[str, Any]) -> None:
    with pytest.raises(SqsError) as raised:
        validate_message_attributes(attributes)
    assert raised.value.query_code == "InvalidParameterValue"
