import datetime as dt

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from ottla.protocol.topics import TopicPartition
from pyspark_ottla.filters import narrow

TOPIC, PARTITION, OFFSET, TIME = ((name,) for name in ("topic", "partition", "offset", "timestamp"))
PARTITIONS = [TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("users", 0)]


def at(microseconds: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(microseconds=microseconds)


@pytest.mark.parametrize(
    ("item", "allowed"),
    [
        (EqualTo(TOPIC, "orders"), [0, 1]),
        (EqualNullSafe(TOPIC, "users"), [2]),
        (Not(EqualTo(TOPIC, "orders")), [2]),
        (In(TOPIC, ("users", "x")), [2]),
        (In(TOPIC, ("users", None)), [2]),
        (Not(In(TOPIC, ("users", None))), []),
        (Not(In(TOPIC, ("users",))), [0, 1]),
        (StringStartsWith(TOPIC, "ord"), [0, 1]),
        (StringEndsWith(TOPIC, "rs"), [0, 1, 2]),
        (StringContains(TOPIC, "ser"), [2]),
        (GreaterThan(TOPIC, "orders"), [2]),
        (GreaterThan(PARTITION, 0), [1]),
        (GreaterThanOrEqual(PARTITION, 0), [0, 1, 2]),
        (LessThan(PARTITION, 1), [0, 2]),
        (LessThanOrEqual(PARTITION, -1), []),
        (IsNull(PARTITION), []),
        (Not(IsNull(PARTITION)), [0, 1, 2]),
    ],
)
def test_topic_and_partition_decide_what_is_read(item: Filter, allowed: list[int]) -> None:
    narrowing, left = narrow([item])
    assert left == []
    assert [partition for partition in PARTITIONS if narrowing.allows(partition)] == [
        PARTITIONS[index] for index in allowed
    ]


@pytest.mark.parametrize(
    ("item", "start", "end"),
    [
        (EqualTo(OFFSET, 5), 5, 6),
        (GreaterThan(OFFSET, 5), 6, None),
        (GreaterThanOrEqual(OFFSET, 5), 5, None),
        (LessThan(OFFSET, 5), 0, 5),
        (LessThanOrEqual(OFFSET, 5), 0, 6),
    ],
)
def test_offsets_cut_the_range(item: Filter, start: int, end: int | None) -> None:
    narrowing, left = narrow([item])
    assert left == []
    assert (narrowing.start, narrowing.end) == (start, 2**63 - 1 if end is None else end)


def test_several_filters_hold_together() -> None:
    narrowing, left = narrow(
        [GreaterThan(OFFSET, 5), GreaterThan(OFFSET, 2), LessThan(OFFSET, 9), IsNotNull(OFFSET)]
    )
    assert left == []
    assert (narrowing.start, narrowing.end) == (6, 9)


def test_a_list_of_offsets_makes_the_range_smaller_and_stays_with_spark() -> None:
    narrowing, left = narrow([In(OFFSET, (8, 3))])
    assert left == [In(OFFSET, (8, 3))]
    assert (narrowing.start, narrowing.end) == (3, 9)


@pytest.mark.parametrize(
    ("item", "milliseconds"),
    [
        (GreaterThanOrEqual(TIME, at(5_000)), 5),
        (GreaterThanOrEqual(TIME, at(5_001)), 6),
        (GreaterThan(TIME, at(5_000)), 6),
        (GreaterThan(TIME, at(4_999)), 5),
        (EqualTo(TIME, at(5_000)), 5),
        (LessThan(TIME, at(5_000)), None),
        (Not(GreaterThan(TIME, at(5_000))), None),
        (GreaterThan(TIME, dt.datetime(2020, 1, 1)), None),
    ],
)
def test_a_lower_bound_of_time_is_used_and_stays_with_spark(
    item: Filter, milliseconds: int | None
) -> None:
    narrowing, left = narrow([item])
    assert left == [item]
    assert narrowing.timestamp_min == milliseconds


@pytest.mark.parametrize(
    "item",
    [
        EqualTo(("value",), b"x"),
        IsNotNull(("value",)),
        EqualTo(("value", "topic"), "x"),
        Not(EqualTo(OFFSET, 5)),
        IsNull(OFFSET),
        In(OFFSET, (1, None)),
    ],
)
def test_the_rest_is_left_to_spark(item: Filter) -> None:
    narrowing, left = narrow([item])
    assert left == [item]
    assert all(narrowing.allows(partition) for partition in PARTITIONS)
    assert (narrowing.start, narrowing.end) == (0, 2**63 - 1)
