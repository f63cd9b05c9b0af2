import pytest

from ottla.protocol.config import ConfigSchema, ConfigValues
from ottla.protocol.errors import ApiError
from ottla.storage.broker_config import BROKER_KEYS, topic_defaults
from ottla.storage.config import TOPIC_KEYS, LogConfig

TOPIC = ConfigSchema(TOPIC_KEYS)
BROKER = ConfigSchema(BROKER_KEYS)


def log_config(topic: dict[str, object], broker: dict[str, object]) -> LogConfig:
    return LogConfig.of(ConfigValues(TOPIC.parse(topic), topic_defaults(BROKER.parse(broker))))


def test_every_field_is_a_topic_key():
    assert LogConfig.of(ConfigValues()) == LogConfig()


def test_names_are_unique():
    assert len(list(TOPIC)) == len(TOPIC_KEYS)
    assert len(list(BROKER)) == len(BROKER_KEYS)


def test_every_synonym_is_a_broker_key():
    assert [key.name for key in TOPIC_KEYS if key.synonym and key.synonym not in BROKER] == []


def test_the_topic_comes_before_the_broker():
    config = log_config({"segment.bytes": "1000"}, {"log.segment.bytes": 2000})
    assert config.segment_bytes == 1000
    assert log_config({}, {"log.segment.bytes": 2000}).segment_bytes == 2000


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
def test_the_finest_unit_of_retention_wins(broker, retention_ms):
    assert log_config({}, broker).retention_ms == retention_ms


def test_roll_hours_set_the_age_of_segments():
    assert log_config({}, {"log.roll.hours": 1}).segment_ms == 3_600_000


def test_an_internal_size_of_segments_takes_the_place_of_the_other():
    both = {"internal.segment.bytes": "100", "segment.bytes": "1000"}
    assert log_config(both, {}).segment_bytes == 100


def test_cleanup_policy_is_a_list():
    config = log_config({"cleanup.policy": "compact,delete"}, {})
    assert config.compact
    assert config.delete
    assert not log_config({}, {}).compact


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cleanup.policy", "compact,burn"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("segment.ms", "0"),
        ("retention.ms", "-2"),
        ("message.timestamp.type", "createtime"),
        ("max.message.bytes", "-1"),
        ("min.insync.replicas", "0"),
    ],
)
def test_bad_values_are_refused(name, value):
    with pytest.raises(ApiError, match=name.replace(".", r"\.")):
        TOPIC.parse({name: value})
