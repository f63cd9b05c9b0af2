import datetime as dt
from collections.abc import Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaException

from ottla.client import (
    Consumer,
    ConsumerConfig,
    GroupProtocol,
    OffsetResetPolicy,
    Producer,
    TopicPartition,
)
from ottla.client.messages import Message
from ottla.client.serializers import from_json, from_text
from ottla.testing import EmbeddedBroker

EARLIEST: dict[str, Any] = {"auto_offset_reset": OffsetResetPolicy.EARLIEST}


def fill(broker: EmbeddedBroker, topic: str, count: int, **options: Any) -> None:
    with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number in range(count):
            producer.send(topic, number, key=str(number), **options)


def read(consumer: Consumer, count: int) -> list[Message]:
    messages: list[Message] = []
    while len(messages) < count:
        messages += consumer.poll(max_records=count - len(messages))
    return messages


def values(messages: Sequence[Message]) -> list[int]:
    return [int(message.value) for message in messages]


def test_a_message_is_a_small_object_that_answers_by_name(
    broker: EmbeddedBroker, servers: str
) -> None:
    topic = broker.topic("orders")
    fill(broker, topic, 1, headers={"from": b"ben"}, timestamp=1234)
    with Consumer(bootstrap_servers=servers).assign({(topic, 0): 0}) as consumer:
        (message,) = read(consumer, 1)
    assert message["offset"] == message.offset == 0
    assert dict(message) == {
        "topic": topic,
        "partition": 0,
        "offset": 0,
        "timestamp": 1234,
        "key": b"0",
        "value": b"0",
        "headers": [("from", b"ben")],
    }
    assert message == broker.records(topic)[0]
    assert hash(message) == hash(broker.records(topic)[0])
    with pytest.raises(KeyError):
        message["offsets"]


@pytest.mark.parametrize("protocol", GroupProtocol)
def test_a_group_goes_on_where_it_was(
    broker: EmbeddedBroker, servers: str, protocol: GroupProtocol
) -> None:
    topic = broker.topic("orders")
    fill(broker, topic, 10)
    config = ConsumerConfig(
        bootstrap_servers=[servers],
        group_id=topic,
        auto_offset_reset=OffsetResetPolicy.EARLIEST,
        enable_auto_commit=False,
        group_protocol=protocol,
    )
    with Consumer(config) as consumer:
        consumer.subscribe([topic])
        assert values(read(consumer, 4)) == [0, 1, 2, 3]
        consumer.commit()
        assert values(read(consumer, 2)) == [4, 5]
        assert consumer.position((topic, 0)) == 6
        assert consumer.committed() == {(topic, 0): 4}
    with Consumer(config) as consumer:
        consumer.subscribe(topic)
        assert values(read(consumer, 6)) == [4, 5, 6, 7, 8, 9]
        consumer.commit({(topic, 0): 7})
    with Consumer(config) as consumer:
        consumer.subscribe(topic)
        assert values(read(consumer, 3)) == [7, 8, 9]


def test_iteration_commits_what_was_handed_out(broker: EmbeddedBroker, servers: str) -> None:
    topic = broker.topic("orders")
    fill(broker, topic, 10)
    config = ConsumerConfig(
        bootstrap_servers=servers, group_id=topic, enable_auto_commit=False, **EARLIEST
    )
    with Consumer(config).subscribe(topic) as consumer:
        for message in consumer:
            if message.offset == 3:
                consumer.commit()
                assert consumer.committed() == {(topic, 0): 4}
                assert consumer.lag() == {(topic, 0): 6}
                break
        assert values(consumer.poll(max_records=2)) == [4, 5]
        assert consumer.position((topic, 0)) == 6


def fail_at_next(consumer: Consumer) -> None:
    with consumer:
        for message in consumer:
            assert message.offset == 4
            raise ZeroDivisionError


def test_auto_commit_keeps_what_was_not_worked_off(broker: EmbeddedBroker, servers: str) -> None:
    topic = broker.topic("orders")
    fill(broker, topic, 10)
    config = ConsumerConfig(bootstrap_servers=servers, group_id=topic, **EARLIEST)
    with Consumer(config).subscribe(topic) as consumer:
        for message in consumer:
            if message.offset == 3:
                break
    with pytest.raises(ZeroDivisionError):
        fail_at_next(Consumer(config).subscribe(topic))
    with Consumer(config).subscribe(topic) as consumer:
        assert values(read(consumer, 6)) == [4, 5, 6, 7, 8, 9]


def test_a_message_is_handed_out_as_soon_as_it_is_there(
    broker: EmbeddedBroker, servers: str
) -> None:
    topic = broker.topic("orders")
    fill(broker, topic, 3)
    with Consumer(bootstrap_servers=servers).assign({(topic, 0): 0}) as consumer:
        assert values(consumer.poll(timeout=3600))[:1] == [0]


def test_seek(broker: EmbeddedBroker, servers: str) -> None:
    topic = broker.topic("orders")
    begin = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    with Producer(bootstrap_servers=servers) as producer:
        for number in range(10):
            producer.send(topic, number, timestamp=int(begin.timestamp() * 1000) + number * 1000)
    with Consumer(bootstrap_servers=servers, **EARLIEST).assign([(topic, 0)]) as consumer:
        assert values(read(consumer, 1)) == [0]
        consumer.seek((topic, 0), 7)
        assert values(read(consumer, 1)) == [7]
        consumer.seek_to_time(begin + dt.timedelta(seconds=4))
        assert values(read(consumer, 1)) == [4]
        consumer.seek_to_beginning()
        assert values(read(consumer, 1)) == [0]
        consumer.seek_to_end()
        fill(broker, topic, 1)
        assert read(consumer, 1)[0].offset == 10


def test_paused_partitions_are_left_out(broker: EmbeddedBroker, servers: str) -> None:
    topic = broker.topic("orders", partitions=2)
    fill(broker, topic, 5, partition=0)
    fill(broker, topic, 5, partition=1)
    with Consumer(bootstrap_servers=servers).assign({(topic, 0): 0, (topic, 1): 0}) as consumer:
        first = next(iter(consumer))
        paused = TopicPartition(topic, first.partition)
        consumer.pause([paused])
        others = read(consumer, 5)
        assert {message.partition for message in others} == {1 - first.partition}
        assert consumer.poll(0.1) == []
        consumer.resume([paused])
        assert values(read(consumer, 4)) == [1, 2, 3, 4]


def test_rebalances_are_told(broker: EmbeddedBroker, servers: str) -> None:
    topic = broker.topic("orders", partitions=2)
    events: list[tuple[str, list[TopicPartition]]] = []
    config = ConsumerConfig(bootstrap_servers=servers, group_id=topic, **EARLIEST)
    with Consumer(config) as consumer:
        consumer.subscribe(
            topic,
            on_assign=lambda partitions: events.append(("assigned", partitions)),
            on_revoke=lambda partitions: events.append(("revoked", partitions)),
        )
        while not events:
            consumer.poll(0.1)
        assert sorted(consumer.assignment) == [(topic, 0), (topic, 1)]
    both = [(topic, 0), (topic, 1)]
    assert [(kind, sorted(partitions)) for kind, partitions in events] == [
        ("assigned", both),
        ("revoked", both),
    ]


def test_deserializers(broker: EmbeddedBroker, servers: str) -> None:
    topic = broker.topic("orders")
    with Producer(bootstrap_servers=servers) as producer:
        producer.send(topic, {"item": "lamp"}, key="anna")
        producer.send(topic, None)
    settings: dict[str, Any] = {"key_deserializer": from_text, "value_deserializer": from_json}
    with Consumer(bootstrap_servers=servers, **settings).assign({(topic, 0): 0}) as consumer:
        lamp, deleted = read(consumer, 2)
    assert (lamp.key, lamp.value) == ("anna", {"item": "lamp"})
    assert (deleted.key, deleted.value) == (None, None)


def test_no_offset_and_no_policy_is_an_error(broker: EmbeddedBroker, servers: str) -> None:
    topic = broker.topic("orders")
    settings: dict[str, Any] = {"auto_offset_reset": OffsetResetPolicy.NONE, "group_id": topic}
    consumer = Consumer(bootstrap_servers=servers, **settings).subscribe(topic)
    with consumer, pytest.raises(KafkaException, match="AUTO_OFFSET_RESET"):
        read(consumer, 1)


def test_read_process_write_is_exactly_once(broker: EmbeddedBroker, servers: str) -> None:
    source, target = broker.topic("orders"), broker.topic("bills")
    fill(broker, source, 20)
    config = ConsumerConfig(
        bootstrap_servers=servers, group_id=source, enable_auto_commit=False, **EARLIEST
    )
    failures = 0
    with (
        Consumer(config).subscribe(source) as consumer,
        Producer(bootstrap_servers=servers, transactional_id=source) as producer,
    ):
        done = 0
        while done < 20:
            messages = consumer.poll(max_records=6)
            try:
                with producer.transaction(consumer):
                    for message in messages:
                        producer.send(target, message.value)
                    if failures < 2 and messages:
                        failures += 1
                        raise ZeroDivisionError
            except ZeroDivisionError:
                continue
            done += len(messages)
    assert values(broker.records(target)) == list(range(20))
