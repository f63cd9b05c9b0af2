from collections.abc import Mapping

import pytest

from ottla.protocol.config import ConfigSchema, ConfigValues
from ottla.protocol.errors import ApiError
from ottla.storage.broker_config import BROKER_KEYS, topic_defaults
from ottla.storage.config import TOPIC_KEYS, LogConfig

TOPIC = ConfigSchema(TOPIC_KEYS)
BROKER = ConfigSchema(BROKER_KEYS)


def log_config(topic: Mapping[str, object], broker: Mapping[str, object]) -> LogConfig:
    return LogConfig.of(ConfigValues(TOPIC.parse(topic), topic_defaults(BROKER.parse(broker))))


def test_every_field_is_a_topic_key() -> None:
    assert LogConfig.of(ConfigValues()) == LogConfig()


def test_names_are_unique() -> None:
    assert len(list(TOPIC)) == len(TOPIC_KEYS)
    assert len(list(BROKER)) == len(BROKER_KEYS)


def test_every_synonym_is_a_broker_key() -> None:
    assert [key.name for key in TOPIC_KEYS if key.synonym and key.synonym not in BROKER] == []


def test_the_topic_comes_before_the_broker() -> None:
    config = log_config({"segment.bytes": "1048576"}, {"log.segment.bytes": 2_000_000})
    assert config.segment_bytes == 1_048_576
    assert log_config({}, {"log.segment.bytes": 2_000_000}).segment_bytes == 2_000_000


@pytest.mark.parametrize(
    ("broker", "retention_ms"),
    [
        ({"log.retention.hours": 2}, 7_200_000),
        ({"log.retention.hours": 2, "log.retention.minutes": 3}, 180_000),
        ({"log.retention.minutes": 3, "log.retention.ms": 4}, 4),
        ({"log.retention.hours": -1}, -1),
        ({}, 604_800_000),
    ],
)
def test_the_finest_unit_of_retention_wins(broker: dict[str, int], retention_ms: int) -> None:
    assert log_config({}, broker).retention_ms == retention_ms


def test_roll_hours_set_the_age_of_segments() -> None:
    assert log_config({}, {"log.roll.hours": 1}).segment_ms == 3_600_000


def test_an_internal_size_of_segments_takes_the_place_of_the_other() -> None:
    both = {"internal.segment.bytes": "100", "segment.bytes": "1048576"}
    assert log_config(both, {}).segment_bytes == 100


def test_an_internal_size_of_the_broker_takes_the_place_of_its_default() -> None:
    both = {"internal.log.segment.bytes": 100, "log.segment.bytes": 2_000_000}
    assert log_config({}, both).segment_bytes == 100
    assert log_config({"segment.bytes": "1048576"}, both).segment_bytes == 1_048_576


def test_cleanup_policy_is_a_list() -> None:
    config = log_config({"cleanup.policy": "compact,delete"}, {})
    assert config.compact
    assert config.delete
    assert not log_config({}, {}).compact


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cleanup.policy", "compact,burn"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("segment.bytes", "1048575"),
        ("segment.ms", "0"),
        ("retention.ms", "-2"),
        ("message.timestamp.type", "createtime"),
        ("max.message.bytes", "-1"),
        ("min.insync.replicas", "0"),
    ],
)
def test_bad_values_are_refused(name: str, value: str) -> None:
    with pytest.raises(ApiError, match=name.replace(".", r"\.")):
        TOPIC.parse({name: value})


RATE = "log.cleaner.io.max.bytes.per.second"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("5", "5.0"),
        ("1.0E9", "1.0E9"),
        ("1e309", "Infinity"),
        ("Infinity", "Infinity"),
        (float("inf"), "Infinity"),
        (".5", "0.5"),
    ],
)
def test_a_double_is_read_and_shown_as_in_java(text: object, shown: str) -> None:
    key = BROKER[RATE]
    assert key.format(key.parse(text)) == shown


@pytest.mark.parametrize("text", ["inf", "+inf", "nan", "NaN", "infinity", "1_000", "0", "-1", ""])
def test_a_rate_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ApiError, match="Invalid value"):
        BROKER[RATE].parse(text)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        (
            "compression.type",
            "zip",
            "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        ("min.cleanable.dirty.ratio", "1.1", "Value must be no more than 1"),
        ("min.cleanable.dirty.ratio", "-1", "Value must be at least 0"),
        ("preallocate", "maybe", "Expected value to be either true or false"),
        ("retention.ms", "9223372036854775808", "Not a number of type LONG"),
    ],
)
def test_refusals_are_worded_as_in_kafka(name: str, value: str, problem: str) -> None:
    with pytest.raises(ApiError) as refused:
        TOPIC[name].parse(value)
    assert refused.value.message == f"Invalid value {value} for configuration {name}: {problem}"


def test_digits_are_not_grouped() -> None:
    with pytest.raises(ApiError, match="Not a number of type LONG"):
        TOPIC["retention.ms"].parse("1_000")
