import pytest

from ottla.gateway.core.filters import EVERYTHING, Filter, parse_filter
from ottla.records.builder import Record

RECORD = Record(key=b"k", value=b"v", headers=(("ce_type", b"order"), ("ce_type", b"late")))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (None, True),
        ({}, True),
        ({"partitions": [0, 3]}, True),
        ({"partitions": 1}, False),
        ({"keys": ["a", "k"]}, True),
        ({"keys": "a"}, False),
        ({"headers": {"ce_type": "late"}}, True),
        ({"headers": {"ce_type": ["other"]}}, False),
        ({"headers": {"ce_source": ["other"]}}, False),
        ({"keys": "k", "partitions": 1}, False),
    ],
)
def test_which_records_match(data: object, expected: bool) -> None:
    assert parse_filter(data).matches(3 if data != {"partitions": 1} else 0, RECORD) is expected


def test_a_record_without_a_key_matches_no_key() -> None:
    assert not Filter(keys=frozenset({b""})).matches(0, Record(value=b"v"))


@pytest.mark.parametrize(
    "data",
    [
        [],
        "key",
        {"key": "k"},
        {"partitions": [-1]},
        {"partitions": ["0"]},
        {"partitions": [True]},
        {"keys": [1]},
        {"headers": ["a"]},
        {"headers": {"a": 1}},
        {"keys": ["a"] * 101},
    ],
)
def test_what_is_no_filter_is_refused(data: object) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_filter(data)


def test_a_filter_is_written_as_it_is_read() -> None:
    data = {"partitions": [0, 2], "keys": ["a"], "headers": {"ce_type": ["x", "y"]}}
    assert parse_filter(data).as_json() == data
    assert parse_filter({}).as_json() == {}
    assert parse_filter({}) == EVERYTHING


def test_only_the_partitions_that_it_names_are_wanted() -> None:
    assert EVERYTHING.wanted({1, 0}) == [0, 1]
    assert Filter(partitions=frozenset({1, 9})).wanted(range(3)) == [1]
