"""Consumer groups, in both protocols, with every client."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaException,
    TopicPartition,
)
from kafka import KafkaConsumer
from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as KafkaPythonPartition
from tests.clients.client import TIMEOUT_S, Sent
from tests.clients.confluent_client import ConfluentClient
from tests.clients.conftest import CreateTopic

NewName = Callable[[], str]

PROTOCOLS = ("classic", "consumer")


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def group(new_name: NewName) -> str:
    return new_name()


@pytest.fixture
def filled(confluent: ConfluentClient, create_topic: CreateTopic) -> str:
    """A topic of two partitions with ten records each."""
    topic = create_topic(partitions=2)
    records = [Sent(value=b"%d" % number, partition=number % 2) for number in range(20)]
    confluent.produce(topic, records)
    return topic


@contextmanager
def member(
    confluent: ConfluentClient, group: str, protocol: str, **more: object
) -> Iterator[Consumer]:
    config = {
        "group.id": group,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    if protocol == "classic":
        config |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 200}
    consumer = Consumer(confluent.config | config | more)
    try:
        yield consumer
    finally:
        consumer.close()


def read(consumer: Consumer, count: int) -> list[int]:
    values: list[int] = []
    while len(values) < count:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None, f"only {len(values)} of {count} records came"
        assert message.error() is None
        values.append(int(message.value() or b""))
    return values


def committed(confluent: ConfluentClient, group: str) -> dict[tuple[str, int], int]:
    future = confluent.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    found = confluent.wait(future[group]).topic_partitions
    return {(place.topic, place.partition): place.offset for place in found}


def test_a_member_reads_and_goes_on_where_it_committed(
    confluent: ConfluentClient, group: str, protocol: str, filled: str
) -> None:
    with member(confluent, group, protocol) as consumer:
        consumer.subscribe([filled])
        assert sorted(read(consumer, 20)) == list(range(20))
        consumer.commit(asynchronous=False)
    assert committed(confluent, group) == {(filled, 0): 10, (filled, 1): 10}
    confluent.produce(filled, [Sent(value=b"20")])
    with member(confluent, group, protocol) as consumer:
        consumer.subscribe([filled])
        assert read(consumer, 1) == [20]


def test_two_members_share_the_partitions(
    confluent: ConfluentClient, group: str, protocol: str, filled: str
) -> None:
    with (
        member(confluent, group, protocol) as first,
        member(confluent, group, protocol) as second,
    ):
        for consumer in (first, second):
            consumer.subscribe([filled])
        owned = await_owners(first, second)
        assert sorted(owned[0] + owned[1]) == [0, 1]
        assert len(owned[0]) == len(owned[1]) == 1


def test_the_other_takes_over_when_one_leaves(
    confluent: ConfluentClient, group: str, protocol: str, filled: str
) -> None:
    with member(confluent, group, protocol) as first:
        first.subscribe([filled])
        with member(confluent, group, protocol) as second:
            second.subscribe([filled])
            await_owners(first, second)
        while len(first.assignment()) < 2:
            first.poll(0.1)
        assert {place.partition for place in first.assignment()} == {0, 1}


def await_owners(first: Consumer, second: Consumer) -> list[list[int]]:
    """Poll both until each owns a partition."""
    while not (first.assignment() and second.assignment()):
        first.poll(0.1)
        second.poll(0.1)
    return [[p.partition for p in consumer.assignment()] for consumer in (first, second)]


def test_metadata_of_a_commit_comes_back(
    confluent: ConfluentClient, group: str, filled: str
) -> None:
    with member(confluent, group, "classic") as consumer:
        consumer.commit(
            offsets=[TopicPartition(filled, 0, 7, metadata="half way")], asynchronous=False
        )
        [place, other] = consumer.committed(
            [TopicPartition(filled, 0), TopicPartition(filled, 1)], timeout=TIMEOUT_S
        )
    assert (place.offset, place.metadata) == (7, "half way")
    assert other.offset < 0


def test_a_group_from_its_first_member_to_its_deletion(
    confluent: ConfluentClient, group: str, protocol: str, filled: str
) -> None:
    def describe() -> Any:
        return confluent.wait(confluent.admin.describe_consumer_groups([group])[group])

    with member(confluent, group, protocol, **{"client.id": "reader"}) as consumer:
        consumer.subscribe([filled])
        read(consumer, 1)
        consumer.commit(asynchronous=False)
        described = describe()
        assert described.state == ConsumerGroupState.STABLE
        [found] = described.members
        assert found.client_id == "reader"
        places = {(p.topic, p.partition) for p in found.assignment.topic_partitions}
        assert places == {(filled, 0), (filled, 1)}
        listed = confluent.wait(confluent.admin.list_consumer_groups()).valid
        assert group in [entry.group_id for entry in listed]
        with pytest.raises(KafkaException):
            confluent.admin.delete_consumer_groups([group])[group].result(TIMEOUT_S)
    assert describe().state == ConsumerGroupState.EMPTY
    confluent.wait(confluent.admin.delete_consumer_groups([group])[group])
    listed = confluent.wait(confluent.admin.list_consumer_groups()).valid
    assert group not in [entry.group_id for entry in listed]


def test_a_static_member_keeps_its_partitions(
    confluent: ConfluentClient, group: str, filled: str
) -> None:
    identity = {"group.instance.id": "one"}
    with member(confluent, group, "classic", **identity) as consumer:
        consumer.subscribe([filled])
        read(consumer, 20)
        consumer.commit(asynchronous=False)
    with member(confluent, group, "classic", **identity) as consumer:
        consumer.subscribe([filled])
        confluent.produce(filled, [Sent(value=b"20")])
        assert read(consumer, 1) == [20]


def test_subscribing_by_pattern(
    confluent: ConfluentClient, group: str, protocol: str, filled: str
) -> None:
    with member(confluent, group, protocol) as consumer:
        consumer.subscribe([f"^{filled}$"])
        assert len(read(consumer, 20)) == 20


def test_offsets_can_be_altered_while_nobody_reads(
    confluent: ConfluentClient, group: str, filled: str
) -> None:
    wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(filled, 0, 8)])
    confluent.wait(confluent.admin.alter_consumer_group_offsets([wanted])[group])
    assert committed(confluent, group) == {(filled, 0): 8}


def test_kafka_python(bootstrap: str, group: str, filled: str) -> None:
    config = {"bootstrap_servers": bootstrap, "group_id": group, "auto_offset_reset": "earliest"}
    consumer = KafkaConsumer(filled, enable_auto_commit=False, **config)
    try:
        values: list[int] = []
        while len(values) < 20:
            for records in consumer.poll(TIMEOUT_S * 1000).values():
                values += [int(record.value) for record in records]
        consumer.commit({KafkaPythonPartition(filled, 0): OffsetAndMetadata(5, "note", -1)})
        found = consumer.committed(KafkaPythonPartition(filled, 0), metadata=True)
    finally:
        consumer.close()
    assert sorted(values) == list(range(20))
    assert (found.offset, found.metadata) == (5, "note")


def test_aiokafka(bootstrap: str, group: str, filled: str) -> None:
    async def consume() -> list[int]:
        consumer = AIOKafkaConsumer(
            filled,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        async with consumer:
            values = [int((await consumer.getone()).value) for _ in range(20)]
            await consumer.commit()
        return values

    assert sorted(asyncio.run(asyncio.wait_for(consume(), TIMEOUT_S))) == list(range(20))


def test_many_members_own_each_partition_once(
    confluent: ConfluentClient, group: str, protocol: str, create_topic: CreateTopic
) -> None:
    """Members come one by one while records are read; none is read by two owners at a time."""
    topic = create_topic(partitions=6)
    confluent.produce(topic, [Sent(value=b"%d" % n, partition=n % 6) for n in range(600)])
    seen: set[int] = set()
    lock = threading.Lock()
    done = threading.Event()

    def consume() -> None:
        with member(confluent, group, protocol) as consumer:
            consumer.subscribe([topic])
            while not done.is_set():
                message = consumer.poll(0.1)
                if message is not None and not message.error():
                    consumer.commit(message, asynchronous=False)
                    with lock:
                        seen.add(int(message.value() or b""))
                    if len(seen) == 600:
                        done.set()

    threads = [threading.Thread(target=consume) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert done.wait(TIMEOUT_S * 2), f"only {len(seen)} of 600 records came"
    for thread in threads:
        thread.join()
    assert committed(confluent, group) == {(topic, partition): 100 for partition in range(6)}
