import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.gateway.core.record_json import encode_record, record_from_json, record_to_json
from ottla.records.builder import Record


def test_text_is_text() -> None:
    record = Record(17, 5, b"k", "ö".encode(), (("a", b"1"),))
    expected = {"topic": "t", "partition": 2, "offset": 17, "timestamp": 5, "key": "k"}
    expected |= {"value": "ö", "headers": [{"name": "a", "value": "1"}]}
    assert record_to_json("t", 2, record) == expected
    assert "ö".encode() in encode_record("t", 2, record)


def test_nothing_is_null_and_bytes_are_base64() -> None:
    record = Record(0, 0, b"\xff", None, (("a", b"\xfe"), ("b", None), ("b", b"2")))
    fields = record_to_json("t", 0, record)
    assert "key" not in fields
    assert fields["key_base64"] == "/w=="
    assert fields["value"] is None
    assert fields["headers"] == [
        {"name": "a", "value_base64": "/g=="},
        {"name": "b", "value": None},
        {"name": "b", "value": "2"},
    ]


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ({}, None),
        ({"value": None}, None),
        ({"value": "text"}, b"text"),
        ({"value": ""}, b""),
        ({"value": {"a": [1, "ö"]}}, '{"a":[1,"ö"]}'.encode()),
        ({"value": 1.5}, b"1.5"),
        ({"value": False}, b"false"),
        ({"value_base64": "/w=="}, b"\xff"),
    ],
)
def test_what_is_published(data: dict[str, Any], value: bytes | None) -> None:
    assert record_from_json(data).value == value


@pytest.mark.parametrize(
    "data",
    [
        [],
        "x",
        {"value_base64": "*"},
        {"value_base64": 5},
        {"value": "a", "value_base64": "/w=="},
        {"headers": {}},
        {"headers": ["a"]},
        {"headers": [{"value": "a"}]},
        {"headers": [{"name": "a", "value_base64": "*"}]},
        {"headers": [{"name": "\ud800"}]},
        {"partition": -1},
        {"timestamp": "now"},
        {"timestamp": True},
        {"timestamp": -2},
        {"value": "\ud800"},
    ],
)
def test_what_is_no_record_is_refused(data: object) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        record_from_json(data)


BYTES = st.none() | st.binary(max_size=20)


@given(
    st.builds(
        Record,
        offset=st.just(5),
        timestamp=st.integers(0, 1 << 50),
        key=BYTES,
        value=BYTES,
        headers=st.lists(st.tuples(st.text(max_size=5), BYTES), max_size=3).map(tuple),
    )
)
def test_what_was_written_is_read_again(record: Record) -> None:
    again = record_from_json(json.loads(encode_record("t", 7, record)))
    assert again == (record.value, record.key, 7, record.headers, record.timestamp)
