"""Administration of groups, with every client that supports it."""

import asyncio

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import ConsumerGroupDescription, OffsetSpec
from kafka import KafkaConsumer
from kafka.admin import KafkaAdminClient
from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as KafkaPythonPartition
from tests.clients.client import TIMEOUT_S, Refused
from tests.clients.confluent_client import ConfluentClient
from tests.clients.conftest import await_value
from tests.clients.groups.conftest import committed
from tests.clients.groups.members import POLLERS, Group

GROUP_NOT_EMPTY = 68
GROUP_ID_NOT_FOUND = 69
INVALID_TOPIC = 17


def described(confluent: ConfluentClient, group_id: str, state: str) -> ConsumerGroupDescription:
    """Waits for the state: a member may have its partitions before the coordinator reports it."""
    while True:
        asked = confluent.admin.describe_consumer_groups([group_id])[group_id]
        found: ConsumerGroupDescription = confluent.wait(asked)
        if found.state.name == state:
            return found


def commit(bootstrap: str, group_id: str, *topic_partitions: TopicPartition) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group_id, "log_level": 2})
    consumer.commit(offsets=list(topic_partitions), asynchronous=False)
    consumer.close()


@pytest.mark.parametrize("client", ["confluent", "confluent-consumer-protocol"])
def test_a_group_is_listed_and_described(
    group: Group, client: str, bootstrap: str, group_id: str, topic: str, confluent: ConfluentClient
) -> None:
    config = {"client.id": "reader"}
    member = group.join(lambda: POLLERS[client](bootstrap, group_id, topic, **config))
    group.wait_for(lambda: len(member.assigned) == 4)
    listing = confluent.wait(confluent.admin.list_consumer_groups())
    [listed] = [known for known in listing.valid if known.group_id == group_id]
    classic = client == "confluent"
    assert listed.type is (ConsumerGroupType.CLASSIC if classic else ConsumerGroupType.CONSUMER)
    stable = described(confluent, group_id, "STABLE")
    [seen] = stable.members
    assert (seen.client_id, seen.host) == ("reader", "/127.0.0.1")
    assigned = {topic_partition.partition for topic_partition in seen.assignment.topic_partitions}
    assert assigned == {0, 1, 2, 3}
    assert stable.coordinator.id == 1


def test_lag_is_the_end_less_what_is_committed(
    bootstrap: str, group_id: str, topic: str, confluent: ConfluentClient
) -> None:
    commit(bootstrap, group_id, TopicPartition(topic, 0, 5), TopicPartition(topic, 1, 25))
    latest = {TopicPartition(topic, index): OffsetSpec.latest() for index in range(2)}
    ends = {
        topic_partition.partition: confluent.wait(future).offset
        for topic_partition, future in confluent.admin.list_offsets(latest).items()
    }
    offsets = committed(confluent, group_id)
    assert {index: ends[index] - offsets[index][0] for index in range(2)} == {0: 20, 1: 0}


def test_metadata_of_a_commit_comes_back(
    bootstrap: str, group_id: str, topic: str, confluent: ConfluentClient
) -> None:
    note = "é" * 1000
    commit(bootstrap, group_id, TopicPartition(topic, 2, 7, metadata=note))
    assert committed(confluent, group_id) == {2: (7, note)}


def test_kafka_python_reads_the_metadata_of_its_commit(
    bootstrap: str, group_id: str, topic: str
) -> None:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=group_id)
    topic_partition = KafkaPythonPartition(topic, 0)
    try:
        consumer.assign([topic_partition])
        consumer.commit({topic_partition: OffsetAndMetadata(5, "note", -1)})
        found = consumer.committed(topic_partition, metadata=True)
    finally:
        consumer.close()
    assert (found.offset, found.metadata) == (5, "note")


def test_offsets_can_be_moved_while_nobody_reads(
    bootstrap: str, group_id: str, topic: str, confluent: ConfluentClient
) -> None:
    commit(bootstrap, group_id, TopicPartition(topic, 0, 20))
    moved = ConsumerGroupTopicPartitions(group_id, [TopicPartition(topic, 0, 3)])
    confluent.wait(confluent.admin.alter_consumer_group_offsets([moved])[group_id])
    assert committed(confluent, group_id)[0][0] == 3


@pytest.mark.parametrize("client", ["confluent", "confluent-consumer-protocol"])
def test_only_a_group_without_members_is_deleted(
    group: Group, client: str, bootstrap: str, group_id: str, topic: str, confluent: ConfluentClient
) -> None:
    member = group.join(lambda: POLLERS[client](bootstrap, group_id, topic))
    group.wait_for(lambda: len(member.received) == 100)
    member.commit()
    with pytest.raises(Refused) as refusal:
        confluent.wait(confluent.admin.delete_consumer_groups([group_id])[group_id])
    assert refusal.value.code == GROUP_NOT_EMPTY
    member.leave()
    assert described(confluent, group_id, "EMPTY").members == []
    confluent.wait(confluent.admin.delete_consumer_groups([group_id])[group_id])
    assert committed(confluent, group_id) == {}
    with pytest.raises(Refused) as refusal:
        confluent.wait(confluent.admin.delete_consumer_groups([group_id])[group_id])
    assert refusal.value.code == GROUP_ID_NOT_FOUND


def test_offsets_go_with_their_topic(
    bootstrap: str, group_id: str, topic: str, confluent: ConfluentClient
) -> None:
    commit(bootstrap, group_id, TopicPartition(topic, 0, 5))
    confluent.delete_topic(topic)
    confluent.create_topic(topic, 4)
    await_value(lambda: committed(confluent, group_id), {})


def test_kafka_python_administers_groups(
    bootstrap: str, group_id: str, topic: str, confluent: ConfluentClient
) -> None:
    commit(bootstrap, group_id, TopicPartition(topic, 0, 5))
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        assert group_id in str(admin.list_groups())
        assert "Empty" in str(admin.describe_groups([group_id]))
        offsets = admin.list_group_offsets(group_id)
        assert " 5" in str(offsets).replace("=", " ")
        admin.delete_groups([group_id])
        assert group_id not in str(admin.list_groups())
    finally:
        admin.close()


def test_aiokafka_administers_groups(bootstrap: str, group_id: str, topic: str) -> None:
    commit(bootstrap, group_id, TopicPartition(topic, 0, 5))

    async def administer() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            assert group_id in {name for name, _ in await admin.list_consumer_groups()}
            [response] = await admin.describe_consumer_groups([group_id])
            assert response.groups[0][0] == 0
            offsets = await admin.list_consumer_group_offsets(group_id)
            assert [
                (topic_partition.partition, found.offset)
                for topic_partition, found in offsets.items()
            ] == [(0, 5)]
        finally:
            await admin.close()

    asyncio.run(asyncio.wait_for(administer(), TIMEOUT_S))


def test_the_topic_of_offsets_is_internal_and_the_brokers_own(
    bootstrap: str, group_id: str, topic: str, confluent: ConfluentClient
) -> None:
    commit(bootstrap, group_id, TopicPartition(topic, 0, 5))
    name = "__consumer_offsets"
    internal = confluent.wait(confluent.admin.describe_topics(TopicCollection([name]))[name])
    assert internal.is_internal
    assert len(internal.partitions) == 5
    assert confluent.topic_config(name)["cleanup.policy"] == "compact"
    errors = []
    producer = Producer(confluent.config)
    producer.produce(name, b"value", b"key", on_delivery=lambda error, _: errors.append(error))
    producer.flush(TIMEOUT_S)
    assert [error and error.code() for error in errors] == [INVALID_TOPIC]
