import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_ottla.arrow_schemas import to_arrow_schema
from pyspark_ottla.json_values import JsonDecoder
from pyspark_ottla.tables.json_inference import complete, infer_fields, merge_fields


def inferred(*values: Any) -> str:
    encoded = [json.dumps(value).encode() for value in values]
    return complete(infer_fields(encoded)).simpleString()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([{"a": 1}, {"a": 2.5}], "a:double"),
        ([{"a": True}, {"a": None}, {"b": "x"}], "a:boolean,b:string"),
        ([{"a": 1}, {"a": "x"}], "a:string"),
        ([{"a": True}, {"a": 1}], "a:string"),
        ([{"a": 2**63}], "a:string"),
        ([{"a": -(2**63)}], "a:bigint"),
        ([{"a": [1, None]}, {"a": [0.5]}], "a:array<double>"),
        ([{"a": []}], "a:array<string>"),
        ([{"a": {"b": 1}}, {"a": {"c": "x", "b": 0.5}}], "a:struct<b:double,c:string>"),
        ([{"a": {"b": 1}}, {"a": [1]}], "a:string"),
        ([{"a": {}}], "a:string"),
        ([{"a": {"b": None}}], "a:string"),
        ([{"a": None}], ""),
        ([[1], 7, "x", None, {"a": 1}], "a:bigint"),
    ],
)
def test_a_type_takes_all_values(values: list[Any], expected: str) -> None:
    assert inferred(*values) == f"struct<{expected}>"


def test_what_is_no_json_does_not_count() -> None:
    assert complete(infer_fields([b"{", b"\xff", None, b'{"a": 1}'])).simpleString() == (
        "struct<a:bigint>"
    )


def test_known_fields_are_left_out() -> None:
    assert infer_fields([b'{"a": 1, "b": 2}'], {"a"}).fieldNames() == ["b"]


def test_types_that_are_not_known_yet_come_with_later_values() -> None:
    first = infer_fields([b'{"a": [], "b": null}'])
    merged = merge_fields(first, infer_fields([b'{"a": [1], "b": true}']))
    assert complete(merged).simpleString() == "struct<a:array<bigint>,b:boolean>"


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text("ab"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner),
    max_leaves=8,
)


@settings(max_examples=50)
@given(st.lists(st.dictionaries(st.sampled_from("abc"), _VALUES), max_size=4))
def test_values_fit_into_the_types_that_they_have(values: list[Any]) -> None:
    import pyarrow as pa

    encoded = [json.dumps(value).encode() for value in values]
    kind = pa.struct(list(to_arrow_schema(complete(infer_fields(encoded)))))
    if kind.num_fields:
        assert JsonDecoder(kind).decode(pa.array(encoded, pa.binary())).bad == {}
