"""Share groups (KIP-932) with a real client: one consumer per record at a time, and redelivery."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType, Consumer, Message, Producer, ShareConsumer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from tests.broker_process import BrokerProcess
from tests.clients import requests
from tests.clients.client import TIMEOUT_S
from tests.clients.conftest import CreateTopic
from tests.clients.wire import Wire

NewGroup = Callable[..., str]

ACCEPT, RELEASE, REJECT = (
    AcknowledgeType.ACCEPT,
    AcknowledgeType.RELEASE,
    AcknowledgeType.REJECT,
)

_CONSUME_AND_HANG = """
import sys, time
from confluent_kafka import ShareConsumer
bootstrap, group, topic = sys.argv[1:]
consumer = ShareConsumer({"bootstrap.servers": bootstrap, "group.id": group})
consumer.subscribe([topic])
while not (messages := list(consumer.poll(1.0))):
    pass
print(*(message.value().decode() for message in messages), flush=True)
time.sleep(600)
"""


@pytest.fixture
def new_group(bootstrap: str, new_name: Callable[[], str]) -> NewGroup:
    """`new_group(**{"share.delivery.count.limit": "2"})` returns the group's name."""
    return lambda **config: configured_group(bootstrap, new_name(), **config)


def configured_group(bootstrap: str, name: str, **config: str) -> str:
    config = {"share.auto.offset.reset": "earliest", **config}
    entries = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        for key, value in config.items()
    ]
    resource = ConfigResource(ResourceType.GROUP, name, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for altered in admin.incremental_alter_configs([resource]).values():
        altered.result(TIMEOUT_S)
    return name


def produce(bootstrap: str, topic: str, *values: str) -> None:
    """Each record in a batch of its own."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for value in values:
        producer.produce(topic, value, key="key", headers={"from": "test"})
        assert producer.flush(TIMEOUT_S) == 0


@contextlib.contextmanager
def share_consumer(
    bootstrap: str, group: str, topic: str, *, explicit: bool = False, **config: object
) -> Iterator[ShareConsumer]:
    consumer = ShareConsumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "share.acknowledgement.mode": "explicit" if explicit else "implicit",
            **config,
        }
    )
    consumer.subscribe([topic])
    try:
        yield consumer
    finally:
        consumer.close()


def poll(consumer: ShareConsumer) -> list[Message]:
    """Waits for the next records."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        messages = list(consumer.poll(0.2))
        assert [message.error() for message in messages if message.error()] == []
        if messages:
            return messages
    raise AssertionError("no records came")


def values(messages: list[Message]) -> list[str]:
    return [(message.value() or b"").decode() for message in messages]


def read_topic(bootstrap: str, topic: str, count: int) -> list[Message]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"reader-of-{topic}",
            "auto.offset.reset": "earliest",
            "allow.auto.create.topics": False,
            "topic.metadata.refresh.interval.ms": 200,
        }
    )
    consumer.subscribe([topic])
    found: list[Message] = []
    deadline = time.monotonic() + TIMEOUT_S
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found.append(message)
    consumer.close()
    return found


def test_records_are_delivered_once(
    bootstrap: str, create_topic: CreateTopic, new_group: NewGroup
) -> None:
    topic, group = create_topic(), new_group()
    produce(bootstrap, topic, "a", "b", "c")
    with share_consumer(bootstrap, group, topic) as consumer:
        got: list[str] = []
        while len(got) < 3:
            got += values(poll(consumer))
        consumer.commit_sync(TIMEOUT_S)
    assert got == ["a", "b", "c"]

    produce(bootstrap, topic, "d")
    with share_consumer(bootstrap, group, topic) as consumer:
        assert values(poll(consumer)) == ["d"]


def test_two_consumers_share_a_partition(
    bootstrap: str, create_topic: CreateTopic, new_group: NewGroup
) -> None:
    topic, group = create_topic(), new_group()
    wanted: list[str] = []
    few: dict[str, Any] = {"max.poll.records": 5}
    with (
        share_consumer(bootstrap, group, topic, **few) as first,
        share_consumer(bootstrap, group, topic, **few) as second,
    ):
        got: dict[ShareConsumer, list[str]] = {first: [], second: []}
        while len(wanted) < 60 or not all(got.values()):  # One may join slowly.
            wanted += [f"record-{len(wanted) + number}" for number in range(10)]
            produce(bootstrap, topic, *wanted[-10:])
            deadline = time.monotonic() + TIMEOUT_S
            while sum(map(len, got.values())) < len(wanted) and time.monotonic() < deadline:
                for consumer, records in got.items():
                    records += values(list(consumer.poll(0.1)))
    assert sorted([*got[first], *got[second]]) == sorted(wanted)


def test_records_of_a_consumer_that_was_killed_come_again(
    bootstrap: str, create_topic: CreateTopic, new_group: NewGroup
) -> None:
    topic, group = create_topic(), new_group()
    produce(bootstrap, topic, "a", "b", "c")
    process = subprocess.Popen(
        [sys.executable, "-c", _CONSUME_AND_HANG, bootstrap, group, topic],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        held = process.stdout.readline().split()
    finally:
        process.kill()
        process.communicate()
    assert held

    with share_consumer(bootstrap, group, topic) as consumer:
        got: list[Message] = []
        while len(got) < 3:
            got += poll(consumer)
    assert sorted(values(got)) == ["a", "b", "c"]
    again = [message for message in got if message.delivery_count() == 2]
    assert set(values(again)) == set(held)


@pytest.mark.usefixtures("own_broker")
def test_a_lock_that_times_out_gives_the_record_to_another(
    bootstrap: str, create_topic: CreateTopic, new_group: NewGroup
) -> None:
    topic = create_topic()
    group = new_group(**{"share.record.lock.duration.ms": "1000"})
    produce(bootstrap, topic, "a")
    with share_consumer(bootstrap, group, topic, explicit=True) as slow:
        assert values(poll(slow)) == ["a"]
        with share_consumer(bootstrap, group, topic) as other:
            assert values(poll(other)) == ["a"]


def test_records_on_their_last_attempt_come_one_by_one(
    bootstrap: str, create_topic: CreateTopic, new_group: NewGroup
) -> None:
    topic = create_topic()
    group = new_group(**{"share.delivery.count.limit": "3"})
    with Wire(bootstrap) as wire:
        wire.call(requests.produce(topic, requests.batch(*(b"%d" % n for n in range(6)))))
    sizes = []
    with share_consumer(bootstrap, group, topic, explicit=True) as consumer:
        for acknowledgement in (RELEASE, RELEASE, *6 * [ACCEPT]):
            messages = poll(consumer)
            sizes.append(len(messages))
            for message in messages:
                consumer.acknowledge(message, acknowledgement)
            consumer.commit_sync(TIMEOUT_S)
    assert sizes == [6, 6, 1, 1, 1, 1, 1, 1]


@pytest.mark.usefixtures("own_broker")
def test_a_poison_record_becomes_a_dead_letter(
    bootstrap: str, create_topic: CreateTopic, new_group: NewGroup
) -> None:
    topic = create_topic()
    group = new_group(**{"share.delivery.count.limit": "3"})
    produce(bootstrap, topic, "good", "poison")
    deliveries = 0
    with share_consumer(bootstrap, group, topic, explicit=True) as consumer:
        while deliveries < 3:
            for message in poll(consumer):
                poisoned = message.value() == b"poison"
                deliveries += poisoned
                consumer.acknowledge(message, RELEASE if poisoned else ACCEPT)
            consumer.commit_sync(TIMEOUT_S)

        (letter,) = read_topic(bootstrap, f"dlq.{topic}", 1)
        assert list(consumer.poll(0.5)) == []
    assert (letter.key(), letter.value()) == (b"key", b"poison")
    assert dict(letter.headers() or ()) == {
        "from": b"test",
        "__dlq.errors.topic": topic.encode(),
        "__dlq.errors.partition": b"0",
        "__dlq.errors.offset": b"1",
        "__dlq.errors.group": group.encode(),
        "__dlq.errors.delivery.count": b"3",
        "__dlq.errors.message": b"the delivery count limit was reached",
    }


@pytest.mark.usefixtures("own_broker")
def test_rejected_records_become_dead_letters_at_once(
    bootstrap: str, create_topic: CreateTopic, new_group: NewGroup
) -> None:
    topic, group = create_topic(), new_group()
    produce(bootstrap, topic, "bad")
    with share_consumer(bootstrap, group, topic, explicit=True) as consumer:
        (message,) = poll(consumer)
        consumer.acknowledge(message, REJECT)
        consumer.commit_sync(TIMEOUT_S)
    (letter,) = read_topic(bootstrap, f"dlq.{topic}", 1)
    assert letter.value() == b"bad"
    assert dict(letter.headers() or ())["__dlq.errors.message"] == b"a consumer rejected it"


@pytest.mark.parametrize("crash", [False, True])
def test_a_restart_keeps_what_was_acknowledged(tmp_path: Path, crash: bool) -> None:
    with BrokerProcess(tmp_path) as broker:
        bootstrap = broker.bootstrap
        AdminClient({"bootstrap.servers": bootstrap})
        produce(bootstrap, "orders", "a", "b", "c", "d")
        group = configured_group(bootstrap, "workers", **{"share.delivery.count.limit": "2"})
        with share_consumer(bootstrap, group, "orders", explicit=True) as consumer:
            got: list[Message] = []
            while len(got) < 4:
                fresh = poll(consumer)
                for message in fresh:
                    kind = ACCEPT if message.value() in {b"a", b"c"} else RELEASE
                    consumer.acknowledge(message, kind)
                consumer.commit_sync(TIMEOUT_S)
                got += [message for message in fresh if (message.offset() or 0) >= len(got)]
        if crash:
            broker.kill()
        else:
            broker.stop()
        broker.start()

        with share_consumer(bootstrap, group, "orders") as consumer:
            again: list[str] = []
            while len(again) < 2:
                again += values(poll(consumer))
            assert list(consumer.poll(0.5)) == []
    assert sorted(again) == ["b", "d"]


@pytest.mark.parametrize(
    ("isolation_level", "wanted"),
    [("read_committed", ["b", "d"]), ("read_uncommitted", ["a", "b", "c", "d"])],
)
def test_aborted_transactions(
    bootstrap: str,
    create_topic: CreateTopic,
    new_group: NewGroup,
    isolation_level: str,
    wanted: list[str],
) -> None:
    topic = create_topic()
    group = new_group(**{"share.isolation.level": isolation_level})
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(TIMEOUT_S)
    for value in "abcd":
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush(TIMEOUT_S)
        if value in "ac":
            producer.abort_transaction(TIMEOUT_S)
        else:
            producer.commit_transaction(TIMEOUT_S)
    with share_consumer(bootstrap, group, topic) as consumer:
        got: list[str] = []
        while len(got) < len(wanted):
            got += values(poll(consumer))
        consumer.commit_sync(TIMEOUT_S)
        assert list(consumer.poll(0.3)) == []
    assert got == wanted
