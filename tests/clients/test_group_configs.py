"""Configs of groups, as an admin client sets and reads them."""

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from tests.clients.client import TIMEOUT_S
from tests.clients.conftest import await_value


@pytest.fixture
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


def alter(admin: AdminClient, group: str, **values: str) -> None:
    """`share_session_timeout_ms="1"` is share.session.timeout.ms."""
    entries = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in values.items()
    ]
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
    (altered,) = admin.incremental_alter_configs([resource]).values()
    altered.result(TIMEOUT_S)


def read(admin: AdminClient, group: str) -> dict[str, str]:
    (described,) = admin.describe_configs([ConfigResource(ResourceType.GROUP, group)]).values()
    return {name: entry.value for name, entry in described.result(TIMEOUT_S).items()}


def test_a_group_has_the_defaults_until_it_is_given_values(
    admin: AdminClient, new_name: Callable[[], str]
) -> None:
    group = new_name()
    values = read(admin, group)
    assert values["consumer.heartbeat.interval.ms"] == "5000"
    assert values["consumer.assignment.interval.ms"] == "1000"
    assert values["share.record.lock.duration.ms"] == "30000"

    alter(admin, group, consumer_heartbeat_interval_ms="6000", share_delivery_count_limit="7")

    await_value(lambda: read(admin, group)["consumer.heartbeat.interval.ms"], "6000")
    assert read(admin, group)["share.delivery.count.limit"] == "7"


@pytest.mark.parametrize(
    "values",
    [
        {"consumer_heartbeat_interval_ms": "4999"},
        {"consumer_session_timeout_ms": "60001"},
        {"consumer_assignment_interval_ms": "15001"},
        {"consumer_assignment_interval_ms": "-1"},
        {"share_heartbeat_interval_ms": "15001"},
        {"share_session_timeout_ms": "44999"},
        {"share_record_lock_duration_ms": "60001"},
        {"share_delivery_count_limit": "1"},
        {"share_delivery_count_limit": "11"},
        {"share_partition_max_record_locks": "4001"},
        {"share_session_timeout_ms": "a while"},
        {"share_auto_offset_reset": "sometime"},
        {"share_no_such_key": "1"},
    ],
    ids=str,
)
def test_values_that_the_broker_does_not_allow_are_refused(
    admin: AdminClient, new_name: Callable[[], str], values: dict[str, str]
) -> None:
    group = new_name()
    with pytest.raises(KafkaException) as refused:
        alter(admin, group, **values)

    assert refused.value.args[0].code() == KafkaError.INVALID_CONFIG
