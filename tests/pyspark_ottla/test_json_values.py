import datetime as dt
import decimal
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_ottla.json_values import JsonDecoder

PLAIN = pa.struct(
    [
        ("text", pa.string()),
        ("number", pa.int32()),
        ("share", pa.float64()),
        ("flag", pa.bool_()),
        ("many", pa.list_(pa.field("element", pa.int64()))),
        ("inner", pa.struct([("text", pa.string())])),
    ]
)


def decode(kind: Any, *values: bytes | None) -> Any:
    decoded = JsonDecoder(kind).decode(pa.array(values, pa.binary()))
    assert decoded.values.type == kind
    decoded.values.validate(full=True)
    return decoded.values.to_pylist(), decoded.bad


def value_of(kind: Any, text: str) -> Any:
    """The value of field `x` of a type."""
    (row,), bad = decode(pa.struct([("x", kind)]), b'{"x": %s}' % text.encode())
    assert not bad, bad
    return row["x"]


def bad(kind: Any, text: str) -> str:
    (row,), bad = decode(pa.struct([("x", kind)]), b'{"x": %s}' % text.encode())
    assert row is None
    return str(bad[0])


objects = st.fixed_dictionaries(
    {},
    optional={
        "text": st.none() | st.text(),
        "number": st.none() | st.integers(-(2**31), 2**31 - 1),
        "share": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "flag": st.none() | st.booleans(),
        "many": st.none() | st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=3),
        "inner": st.none() | st.fixed_dictionaries({"text": st.none() | st.text()}),
        "unknown": st.integers(),
    },
)


@given(st.lists(st.none() | objects, max_size=8), st.booleans())
def test_what_json_wrote(rows: list[dict[str, Any] | None], ascii_only: bool) -> None:
    values = [
        None if row is None else json.dumps(row, ensure_ascii=ascii_only).encode(errors="replace")
        for row in rows
    ]
    found, bad = decode(PLAIN, *values)
    names = [field.name for field in PLAIN]
    assert bad == {}
    assert found == [
        None if value is None else {name: json.loads(value).get(name) for name in names}
        for value in values
    ]


bits = st.sampled_from(
    [b"{", b"}", b'{"number": 1}', b'{"number": 2} {"number": 3}', b'"', b"\n", b"", b" {} ", b"{}"]
)


@given(st.lists(st.lists(bits, max_size=3).map(b"".join), max_size=6))
def test_no_value_is_read_as_a_part_of_another(values: list[bytes]) -> None:
    found, bad = decode(PLAIN, *values)
    for index, value in enumerate(values):
        alone, alone_bad = decode(PLAIN, value)
        assert found[index] == alone[0]
        assert (index in bad) == bool(alone_bad)


def test_values_over_many_lines_and_slices() -> None:
    values = pa.array([b"x", b'{\n"number":\n1}', b'{"number": 2}', b"y"], pa.binary()).slice(1, 2)
    decoded = JsonDecoder(PLAIN).decode(values)
    assert [row["number"] for row in decoded.values.to_pylist()] == [1, 2]


def test_types_that_json_has_no_word_for() -> None:
    utc = dt.UTC
    assert value_of(pa.timestamp("us", tz="UTC"), '"2024-05-01T10:00:00.5Z"') == dt.datetime(
        2024, 5, 1, 10, 0, 0, 500_000, utc
    )
    assert value_of(pa.timestamp("us", tz="UTC"), '"2024-05-01 10:00:00"').astimezone(
        utc
    ) == dt.datetime(2024, 5, 1, 10, tzinfo=utc)
    assert value_of(pa.timestamp("us"), '"2024-05-01T10:00:00"') == dt.datetime(2024, 5, 1, 10)
    assert value_of(pa.date32(), '"2024-05-01"') == dt.date(2024, 5, 1)
    assert value_of(pa.decimal128(10, 2), '"12.50"') == decimal.Decimal("12.50")
    assert value_of(pa.decimal128(10, 2), "12.5") == decimal.Decimal("12.50")
    assert value_of(pa.binary(), '"aGVsbG8="') == b"hello"
    assert value_of(pa.map_(pa.string(), pa.int32()), '{"a": 1, "b": null}') == [
        ("a", 1),
        ("b", None),
    ]
    assert value_of(pa.string(), "12") == "12"
    assert value_of(pa.string(), '{"a": [1, 2]}') == '{"a":[1,2]}'
    assert value_of(pa.float32(), "3") == 3.0


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        (pa.int32(), "2147483648", "too large"),
        (pa.int8(), "128", "too large"),
        (pa.int32(), "1.5", "where a whole number must be"),
        (pa.int32(), "true", "where a whole number must be"),
        (pa.int32(), '"1"', "where a whole number must be"),
        (pa.bool_(), "1", "where true or false must be"),
        (pa.float64(), '"x"', "where a number must be"),
        (pa.list_(pa.int32()), "{}", "where an array must be"),
        (pa.struct([("a", pa.int32())]), "[]", "where an object must be"),
        (pa.map_(pa.string(), pa.int32()), "[]", "where an object must be"),
        (pa.date32(), '"tomorrow"', "Invalid isoformat"),
        (pa.date32(), "3", "where a text must be"),
        (pa.timestamp("us", tz="UTC"), '"x"', "Invalid isoformat"),
        (pa.binary(), '"%"', "base64"),
        (pa.decimal128(4, 2), '"123.45"', "Invalid"),
        (pa.decimal128(4, 2), '"x"', "Conversion"),
        (pa.string(), '"\\ud800"', "surrogates not allowed"),
    ],
)
def test_what_does_not_fit_is_said(kind: Any, text: str, reason: str) -> None:
    assert reason in bad(kind, text)


@pytest.mark.parametrize(
    "value", [b"", b"{", b"nonsense", b'{"a": }', b"\xff\xfe", b'{"text":"\xff"}']
)
def test_what_is_no_json_is_said_and_the_others_are_read(value: bytes) -> None:
    rows, bad = decode(PLAIN, b'{"number": 1}', value, None, b'{"number": 2}')
    assert list(bad) == [1]
    assert [row and row["number"] for row in rows] == [1, None, None, 2]


def test_other_values_than_objects() -> None:
    rows, bad = decode(pa.list_(pa.int32()), b"[1, 2]", b"{}")
    assert rows == [[1, 2], None]
    assert list(bad) == [1]
