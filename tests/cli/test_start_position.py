import datetime as dt

import pytest
from confluent_kafka import Consumer, TopicPartition

from ottla.cli.errors import CommandError, UsageError
from ottla.cli.start_position import OffsetRange, StartPosition, parse_start, parse_timestamp

HELD = OffsetRange(10, 20)


def resolve(start: StartPosition) -> int:
    consumer = Consumer({"bootstrap.servers": "", "group.id": "test", "log_level": 0})
    try:
        [topic_partition] = start.resolve(consumer, [TopicPartition("orders", 0)], {0: HELD})
    finally:
        consumer.close()
    return int(topic_partition.offset)


@pytest.mark.parametrize(
    ("offset", "expected"),
    [("10", 10), ("20", 20), ("-1", 19), ("-100", 10), ("earliest", 10), ("latest", 20)],
)
def test_offset(offset: str, expected: int) -> None:
    start = parse_start(from_beginning=False, offset=offset, timestamp=None)
    assert resolve(start) == expected


def test_without_a_wish_it_is_the_end() -> None:
    assert resolve(parse_start(from_beginning=False, offset=None, timestamp=None)) == 20


def test_from_beginning_is_the_log_start_offset() -> None:
    assert resolve(parse_start(from_beginning=True, offset=None, timestamp=None)) == 10


@pytest.mark.parametrize("offset", ["9", "21"])
def test_an_offset_that_is_not_held_is_refused(offset: str) -> None:
    start = parse_start(from_beginning=False, offset=offset, timestamp=None)
    with pytest.raises(CommandError, match="from 10 to 20"):
        resolve(start)


def test_timestamps_are_milliseconds_or_iso_8601() -> None:
    assert parse_timestamp("1700000000123") == 1700000000123
    assert parse_timestamp("2023-11-14T22:13:20Z") == 1700000000000
    assert parse_timestamp("2023-11-14T22:13:20.5+00:00") == 1700000000500
    local = dt.datetime(2023, 11, 14, 22, 13, 20).astimezone()
    assert parse_timestamp("2023-11-14T22:13:20") == round(local.timestamp() * 1000)


def test_other_timestamps_are_refused() -> None:
    with pytest.raises(UsageError, match="yesterday"):
        parse_timestamp("yesterday")
