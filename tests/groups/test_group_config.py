"""Group configs, their bounds, and the constraints between them."""

import pytest

from ottla.groups.bounded_keys import BoundedKey, Limit, bounded_key
from ottla.groups.consumer import config as consumer
from ottla.groups.consumer.config import ConsumerConfig
from ottla.groups.group_config import GROUP_KEYS, validate_broker, validate_group
from ottla.groups.share import config as share
from ottla.groups.streams import config as streams
from ottla.protocol.config import ConfigSchema, ConfigValues
from ottla.protocol.errors import ApiError, ErrorCode

BROKER_SCHEMA = ConfigSchema((*consumer.BROKER_KEYS, *share.BROKER_KEYS, *streams.BROKER_KEYS))


def test_every_group_key_has_a_broker_key_with_the_same_default() -> None:
    for key in GROUP_KEYS:
        assert key.synonym == f"group.{key.name}"
        assert BROKER_SCHEMA[key.synonym].default == key.default


def test_the_defaults_are_valid_and_go_together() -> None:
    for key in (*BROKER_SCHEMA, *ConfigSchema(GROUP_KEYS)):
        assert key.parse(key.format(key.default)) == key.default
    validate_broker(ConfigValues())
    validate_group(ConfigValues(), ConfigValues())


@pytest.mark.parametrize(
    ("key", "defaults"),
    [
        (consumer.MEMBERSHIP.session_timeout_ms, (45_000, 45_000, 60_000)),
        (consumer.MEMBERSHIP.heartbeat_interval_ms, (5_000, 5_000, 15_000)),
        (consumer.MEMBERSHIP.assignment_interval_ms, (0, 1_000, 15_000)),
        (share.MEMBERSHIP.session_timeout_ms, (45_000, 45_000, 60_000)),
        (share.MEMBERSHIP.heartbeat_interval_ms, (5_000, 5_000, 15_000)),
        (share.MEMBERSHIP.assignment_interval_ms, (0, 1_000, 15_000)),
        (share.SHARE_RECORD_LOCK_DURATION_MS, (15_000, 30_000, 60_000)),
        (share.SHARE_DELIVERY_COUNT_LIMIT, (2, 5, 10)),
        (share.SHARE_PARTITION_MAX_RECORD_LOCKS, (100, 2_000, 4_000)),
    ],
)
def test_bounds_are_those_of_kafka(key: BoundedKey, defaults: tuple[int, int, int]) -> None:
    found = (key.low_key.default, key.broker_key.default, key.high_key.default)
    assert found == defaults


def test_names_of_bounds() -> None:
    key = bounded_key("share.a.b", Limit(2, least=1), "", low=Limit(1, 1), high=Limit(3, 1))

    assert [each.name for each in (key.group_key, *key.broker_keys)] == [
        "share.a.b",
        "group.share.a.b",
        "group.share.min.a.b",
        "group.share.max.a.b",
    ]


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"share.session.timeout.ms": 44_999}, "group.share.min.session.timeout.ms"),
        ({"share.delivery.count.limit": 11}, "group.share.max.delivery.count.limit"),
        ({"consumer.heartbeat.interval.ms": 100}, "group.consumer.min.heartbeat.interval.ms"),
        ({"consumer.assignment.interval.ms": 15_001}, "group.consumer.max.assignment"),
    ],
)
def test_a_group_stays_within_the_bounds(values: dict[str, int], named: str) -> None:
    with pytest.raises(ApiError, match=named) as refused:
        validate_group(ConfigValues(values), ConfigValues())
    assert refused.value.code is ErrorCode.invalid_config


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (5, "must be greater than or equal to group.consumer.min.session.timeout.ms"),
        (60_001, "must be less than or equal to group.consumer.max.session.timeout.ms"),
    ],
)
def test_a_value_out_of_bounds_is_refused_as_by_kafka(value: int, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        validate_group(ConfigValues({"consumer.session.timeout.ms": value}), ConfigValues())
    assert refused.value.message == f"consumer.session.timeout.ms {message}"


def test_standby_replicas_have_the_brokers_maximum() -> None:
    most = "must be less than or equal to group.streams.max.standby.replicas"
    validate_group(ConfigValues({"streams.num.standby.replicas": 2}), ConfigValues())
    with pytest.raises(ApiError) as refused:
        validate_group(ConfigValues({"streams.num.standby.replicas": 3}), ConfigValues())
    assert refused.value.message == f"streams.num.standby.replicas {most}"
    with pytest.raises(ApiError) as refused:
        validate_broker(ConfigValues({"group.streams.num.standby.replicas": 3}))
    assert refused.value.message == f"group.streams.num.standby.replicas {most}"


def test_the_bounds_of_the_broker_count() -> None:
    broker = ConfigValues({"group.share.min.record.lock.duration.ms": 1_000})

    validate_group(ConfigValues({"share.record.lock.duration.ms": 1_000}), broker)
    with pytest.raises(ApiError, match=r"greater than or equal to group\.share\.min\.record"):
        validate_group(ConfigValues({"share.record.lock.duration.ms": 999}), broker)


def test_a_session_takes_longer_than_a_heartbeat() -> None:
    broker = {"group.share.min.session.timeout.ms": 1, "group.consumer.min.session.timeout.ms": 1}

    with pytest.raises(ApiError, match=r"^share\.session\.timeout\.ms must be greater"):
        validate_group(ConfigValues({"share.session.timeout.ms": 5_000}), ConfigValues(broker))
    session = {"group.consumer.session.timeout.ms": 5_000}
    with pytest.raises(ApiError, match=r"group\.consumer\.session\.timeout\.ms must be greater"):
        validate_broker(ConfigValues({**broker, **session}))


def test_a_broker_stays_within_its_own_bounds() -> None:
    with pytest.raises(ApiError, match=r"group\.consumer\.min\.session\.timeout\.ms"):
        validate_broker(ConfigValues({"group.consumer.session.timeout.ms": 10}))


def test_values_outside_of_narrower_bounds_count_as_far_as_these_allow() -> None:
    broker = ConfigValues(
        {
            "group.consumer.max.session.timeout.ms": 50_000,
            "group.consumer.min.heartbeat.interval.ms": 6_000,
        }
    )
    group = ConfigValues({"consumer.session.timeout.ms": 60_000})

    config = ConsumerConfig.of(group, broker)

    assert (config.session_timeout_ms, config.pace.heartbeat_interval_ms) == (50_000, 6_000)
    assert ConsumerConfig.of(ConfigValues(), ConfigValues()) == ConsumerConfig()
