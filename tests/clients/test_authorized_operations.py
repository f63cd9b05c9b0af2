"""Authorized operations in responses, on request: all of them without an authorizer."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from confluent_kafka import Consumer
from tests.clients.versions import build_request
from tests.clients.wire import Wire

METADATA, DESCRIBE_GROUPS, DESCRIBE_CLUSTER = 3, 15, 60
CONSUMER_GROUP_DESCRIBE, DESCRIBE_TOPIC_PARTITIONS = 69, 75

READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION = range(3, 10)
DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = range(10, 13)
OF_TOPIC = {READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS}
OF_GROUP = {READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS}
OF_CLUSTER = {
    *(CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE)
}
UNKNOWN = -(2**31)

Ask = Callable[..., Any]


def bits(operations: set[int]) -> int:
    return sum(1 << operation for operation in operations)


@pytest.fixture
def ask(wire: Wire) -> Ask:
    def call(key: int, version: int, values: Mapping[str, Any], **more: Any) -> Any:
        return wire.call(build_request(key, version, {**values, **more}))

    return call


@pytest.mark.parametrize("asked", [True, False])
def test_of_topics_and_the_cluster(ask: Ask, topic: str, asked: bool) -> None:
    expected = (bits(OF_TOPIC), bits(OF_CLUSTER)) if asked else (UNKNOWN, UNKNOWN)
    named = {"topics": ({"name": topic},), "allow_auto_topic_creation": False}
    flags = {
        "include_topic_authorized_operations": asked,
        "include_cluster_authorized_operations": asked,
    }
    answer = ask(METADATA, 8, named, **flags)
    shown = answer.topics[0].topic_authorized_operations, answer.cluster_authorized_operations
    assert shown == expected
    cluster = ask(DESCRIBE_CLUSTER, 0, flags)
    assert cluster.cluster_authorized_operations == expected[1]


def test_of_described_topics(ask: Ask, topic: str) -> None:
    """Included without a request."""
    named = {"topics": ({"name": topic},), "response_partition_limit": 10, "cursor": None}
    (found,) = ask(DESCRIBE_TOPIC_PARTITIONS, 0, named).topics
    assert found.topic_authorized_operations == bits(OF_TOPIC)


@pytest.fixture(params=["classic", "consumer"])
def group(
    request: pytest.FixtureRequest, bootstrap: str, topic: str, new_name: Callable[[], str]
) -> Iterator[tuple[str, str]]:
    """A group with a member, and its protocol."""
    protocol, group_id = request.param, new_name()
    config = {"bootstrap.servers": bootstrap, "group.id": group_id, "group.protocol": protocol}
    consumer = Consumer(config)
    consumer.subscribe([topic])
    while not consumer.assignment():
        consumer.poll(0.1)
    yield group_id, protocol
    consumer.close()


@pytest.mark.parametrize("asked", [True, False])
def test_of_groups(ask: Ask, group: tuple[str, str], asked: bool) -> None:
    group_id, protocol = group
    is_classic = protocol == "classic"
    key, version = (DESCRIBE_GROUPS, 6) if is_classic else (CONSUMER_GROUP_DESCRIBE, 1)
    ids = {"groups" if is_classic else "group_ids": (group_id,)}
    (found,) = ask(key, version, ids, include_authorized_operations=asked).groups
    assert len(found.members) == 1
    assert found.authorized_operations == (bits(OF_GROUP) if asked else UNKNOWN)
