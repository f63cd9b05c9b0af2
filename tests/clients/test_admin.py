"""Topics and their configuration, by the admin client of each library."""

from collections.abc import Callable

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigResource,
    ConfigSource,
    NewTopic,
    ResourceType,
)
from tests.clients.client import Client, Refused, Sent
from tests.clients.confluent_client import ConfluentClient
from tests.clients.conftest import CreateTopic, await_leader, await_value
from tests.clients.wire import Wire

from ottla.protocol.errors import ErrorCode

NewName = Callable[[], str]


def test_a_topic_from_its_creation_to_its_deletion(client: Client, new_name: NewName) -> None:
    topic = new_name()
    client.create_topic(topic, 3, {"retention.ms": "12345"})
    assert topic in client.topics()
    assert client.partitions(topic) == [0, 1, 2]
    assert client.topic_config(topic)["retention.ms"] == "12345"
    client.produce(topic, [Sent(partition=2)])
    client.delete_topic(topic)
    await_value(lambda: topic in client.topics(), False)


def test_producing_makes_the_topic(client: Client, new_name: NewName) -> None:
    topic = new_name()
    client.produce(topic, [Sent(value=b"first")])
    assert client.partitions(topic) == [0]
    assert [record.value for record in client.consume(topic, 0, 0, 1)] == [b"first"]


def test_a_topic_that_is_there_is_not_created_again(client: Client, topic: str) -> None:
    with pytest.raises(Refused) as refusal:
        client.create_topic(topic)
    assert refusal.value.code == ErrorCode.topic_already_exists


@pytest.mark.parametrize("name", ["with space", "slash/", "ü", ".", "..", "x" * 250])
def test_a_bad_topic_name_is_refused(client: Client, name: str) -> None:
    with pytest.raises(Refused) as refusal:
        client.create_topic(name)
    assert refusal.value.code == ErrorCode.invalid_topic_exception


def test_names_that_differ_only_in_dot_and_underscore_collide(
    client: Client, new_name: NewName
) -> None:
    name = new_name()
    client.create_topic(f"{name}.a")
    with pytest.raises(Refused) as refusal:
        client.create_topic(f"{name}_a")
    assert refusal.value.code == ErrorCode.invalid_topic_exception


def test_deleting_a_topic_that_is_not_there(client: Client, new_name: NewName) -> None:
    with pytest.raises(Refused) as refusal:
        client.delete_topic(new_name())
    assert refusal.value.code == ErrorCode.unknown_topic_or_partition


def test_a_deleted_topic_can_be_created_again_and_is_empty(
    client: Client, wire: Wire, new_name: NewName
) -> None:
    topic = new_name()
    for _ in range(2):
        client.create_topic(topic)
        await_leader(wire, topic, 0)
        assert client.offsets(topic, 0) == (0, 0)
        client.produce(topic, [Sent()])
        client.delete_topic(topic)
        await_value(lambda: topic in client.topics(), False)


def test_partitions_can_be_added(client: Client, topic: str) -> None:
    client.produce(topic, [Sent(value=b"old")])
    client.add_partitions(topic, 3)
    await_value(lambda: client.partitions(topic), [0, 1, 2])
    client.produce(topic, [Sent(value=b"new", partition=2)])
    assert client.consume(topic, 2, 0, 1)[0].value == b"new"
    assert client.consume(topic, 0, 0, 1)[0].value == b"old"


@pytest.mark.parametrize("total_count", [1, 3])
def test_partitions_cannot_be_taken_away(
    client: Client, total_count: int, create_topic: CreateTopic
) -> None:
    topic = create_topic(partitions=3)
    with pytest.raises(Refused) as refusal:
        client.add_partitions(topic, total_count)
    assert refusal.value.code == ErrorCode.invalid_partitions


def test_a_config_value_can_be_set(client: Client, topic: str) -> None:
    client.set_topic_config(topic, "retention.ms", "54321")
    await_value(lambda: client.topic_config(topic)["retention.ms"], "54321")


@pytest.mark.parametrize(
    ("key", "value"),
    [("retention.ms", "soon"), ("cleanup.policy", "burn"), ("no.such.key", "1")],
)
def test_a_bad_config_value_is_refused(client: Client, topic: str, key: str, value: str) -> None:
    with pytest.raises(Refused) as refusal:
        client.set_topic_config(topic, key, value)
    assert refusal.value.code == ErrorCode.invalid_config
    assert client.topic_config(topic).get(key) != value


def test_a_topic_with_a_bad_config_is_not_created(client: Client, new_name: NewName) -> None:
    topic = new_name()
    with pytest.raises(Refused) as refusal:
        client.create_topic(topic, 1, {"retention.ms": "soon"})
    assert refusal.value.code == ErrorCode.invalid_config
    assert topic not in client.topics()


def test_more_replicas_than_brokers_are_refused(
    confluent: ConfluentClient, new_name: NewName
) -> None:
    new = NewTopic(new_name(), 1, 3)
    with pytest.raises(Refused) as refusal:
        confluent.wait(confluent.admin.create_topics([new])[new.topic])
    assert refusal.value.code == ErrorCode.invalid_replication_factor


def test_partitions_and_replicas_have_defaults(
    confluent: ConfluentClient, new_name: NewName
) -> None:
    new = NewTopic(new_name(), -1, -1)
    confluent.wait(confluent.admin.create_topics([new])[new.topic])
    assert confluent.partitions(new.topic) == [0]


def test_validate_only_creates_nothing(confluent: ConfluentClient, new_name: NewName) -> None:
    new = NewTopic(new_name(), 1, 1)
    confluent.wait(confluent.admin.create_topics([new], validate_only=True)[new.topic])
    assert new.topic not in confluent.topics()


def test_every_config_key_is_described_with_its_source(
    confluent: ConfluentClient, create_topic: CreateTopic
) -> None:
    topic = create_topic(**{"retention.ms": "1000"})
    entries = confluent.describe(topic)
    assert len(entries) >= 25
    assert ConfigSource(entries["retention.ms"].source) is ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert not entries["retention.ms"].is_default
    assert entries["cleanup.policy"].value == "delete"
    assert ConfigSource(entries["cleanup.policy"].source) is ConfigSource.DEFAULT_CONFIG
    assert entries["max.message.bytes"].value == "1048588"


def test_a_config_value_goes_back_to_its_default(confluent: ConfluentClient, topic: str) -> None:
    confluent.set_topic_config(topic, "retention.ms", "1000")
    confluent.alter(topic, AlterConfigOpType.DELETE, "retention.ms", None)
    await_value(lambda: confluent.topic_config(topic)["retention.ms"], "604800000")


def test_append_and_subtract(confluent: ConfluentClient, topic: str) -> None:
    def policies() -> set[str]:
        return set(str(confluent.topic_config(topic)["cleanup.policy"]).split(","))

    confluent.alter(topic, AlterConfigOpType.APPEND, "cleanup.policy", "compact")
    await_value(policies, {"delete", "compact"})
    confluent.alter(topic, AlterConfigOpType.SUBTRACT, "cleanup.policy", "delete")
    await_value(policies, {"compact"})


def test_append_to_what_is_no_list_is_refused(confluent: ConfluentClient, topic: str) -> None:
    with pytest.raises(Refused) as refusal:
        confluent.alter(topic, AlterConfigOpType.APPEND, "retention.ms", "1")
    assert refusal.value.code == ErrorCode.invalid_config


def test_incremental_changes_leave_other_keys_alone(
    confluent: ConfluentClient, create_topic: CreateTopic
) -> None:
    topic = create_topic(**{"retention.ms": "1000"})
    confluent.set_topic_config(topic, "segment.bytes", "2000000")

    def values() -> list[str | None]:
        config = confluent.topic_config(topic)
        return [config[key] for key in ("retention.ms", "segment.bytes")]

    await_value(values, ["1000", "2000000"])


def test_the_config_of_a_topic_that_is_not_there(
    confluent: ConfluentClient, new_name: NewName
) -> None:
    with pytest.raises(Refused) as refusal:
        confluent.describe(new_name())
    assert refusal.value.code == ErrorCode.unknown_topic_or_partition


def test_the_config_of_the_broker(confluent: ConfluentClient) -> None:
    [node] = confluent.wait(confluent.admin.describe_cluster()).nodes
    resource = ConfigResource(ResourceType.BROKER, str(node.id))
    entries = confluent.wait(confluent.admin.describe_configs([resource])[resource])
    assert entries["num.partitions"].value == "1"
    assert entries["auto.create.topics.enable"].value == "true"
    assert entries["log.dirs"].value


def test_the_cluster(confluent: ConfluentClient) -> None:
    cluster = confluent.wait(confluent.admin.describe_cluster())
    assert cluster.cluster_id
    assert [node.id for node in cluster.nodes] == [cluster.controller.id]


def test_a_topic_is_described_with_its_id(
    confluent: ConfluentClient, create_topic: CreateTopic
) -> None:
    topic = create_topic(partitions=2)
    future = confluent.admin.describe_topics(TopicCollection([topic]))[topic]
    described = confluent.wait(future)
    assert not described.is_internal
    assert str(described.topic_id).strip("A")  # "A" is zero in base 64.
    for partition in described.partitions:
        assert [node.id for node in partition.isr] == [partition.leader.id]
