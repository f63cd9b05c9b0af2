import os
import signal
import threading
import time
from typing import Any

import pytest

from ottla.client import Admin, Producer, ShareConsumer, share_consumer
from ottla.client.serializers import from_json, from_text
from ottla.testing import EmbeddedBroker


@pytest.fixture
def queue(broker: EmbeddedBroker, servers: str) -> str:
    """A topic whose share group, of the same name, reads from the beginning."""
    topic = broker.topic("tasks")
    Admin(bootstrap_servers=servers).set_configs(
        {"share.auto.offset.reset": "earliest"}, group=topic
    )
    return topic


def fill(servers: str, topic: str, count: int) -> None:
    with Producer(bootstrap_servers=servers) as producer:
        for number in range(count):
            producer.send(topic, number, key="one")


def consumer_of(servers: str, queue: str, **settings: Any) -> ShareConsumer:
    settings = {"value_deserializer": from_json, "key_deserializer": from_text, **settings}
    return ShareConsumer(bootstrap_servers=servers, group_id=queue, **settings).subscribe(queue)


def test_what_is_not_acknowledged_comes_again(servers: str, queue: str) -> None:
    fill(servers, queue, 4)
    seen: list[tuple[int, int]] = []
    with consumer_of(servers, queue) as consumer:
        for message in consumer:
            assert message.key == "one"
            seen.append((message.value, message.delivery_count))
            if message.value == 1 and message.delivery_count == 1:
                message.nack()
            elif message.value == 2:
                message.reject()
            elif message.value == 3 and message.delivery_count == 1:
                continue
            else:
                message.ack()
            if len(seen) == 6:
                break
    assert sorted(seen) == [(0, 1), (1, 1), (1, 2), (2, 1), (3, 1), (3, 2)]


def test_a_message_is_acknowledged_once(servers: str, queue: str) -> None:
    fill(servers, queue, 1)
    with consumer_of(servers, queue) as consumer:
        message = next(iter(consumer))
        message.ack()
        with pytest.raises(ValueError, match="already acknowledged"):
            message.nack()


def test_more_workers_than_partitions(servers: str, queue: str) -> None:
    fill(servers, queue, 30)
    stop = threading.Event()
    done: list[int] = []
    failed: set[int] = set()
    together = threading.Barrier(3)

    def handle(message: Any) -> None:
        if message.value < 3 and message.delivery_count == 1:
            together.wait(300)  # Blocks unless three run at once.
        if message.value % 10 == 0 and message.value not in failed:
            failed.add(message.value)
            raise ValueError("try again")
        done.append(message.value)
        if len(set(done)) == 30:
            stop.set()

    consumer_of(servers, queue).run(handle, concurrency=3, stop=stop)
    assert set(done) == set(range(30))


def test_a_signal_lets_workers_finish(servers: str, queue: str) -> None:
    fill(servers, queue, 3)
    done: list[int] = []

    def handle(message: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        done.append(message.value)

    before = signal.getsignal(signal.SIGTERM)
    consumer_of(servers, queue).run(handle)
    assert done == [0]
    assert signal.getsignal(signal.SIGTERM) is before
    with consumer_of(servers, queue) as consumer:
        assert next(iter(consumer)).value == 1


def test_a_message_comes_again_after_a_delay(servers: str, queue: str) -> None:
    fill(servers, queue, 2)
    seen: list[tuple[int, int, float]] = []
    with consumer_of(servers, queue) as consumer:
        for message in consumer:
            seen.append((message.value, message.delivery_count, time.monotonic()))
            if message.value == 0 and message.delivery_count == 1:
                message.nack(delay=2.0)
            else:
                message.ack()
            if len(seen) == 3:
                break
    assert [entry[:2] for entry in seen] == [(0, 1), (1, 1), (0, 2)]
    assert seen[2][2] - seen[0][2] >= 2.0


def test_locks_are_renewed_while_a_handler_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even while other, quick handlers keep the consumer busy."""
    monkeypatch.setattr(share_consumer, "RENEW_INTERVAL_S", 0.3)
    limits = {
        "group.share.record.lock.duration.ms": 4000,  # A busy machine may be late for seconds.
        "group.share.min.record.lock.duration.ms": 1000,
    }
    stop = threading.Event()
    seen: list[tuple[int, int]] = []

    def handle(message: Any) -> None:
        seen.append((message.value, message.delivery_count))
        if message.value == 0:
            time.sleep(9.0)  # Longer than two locks.
            stop.set()
        else:
            time.sleep(0.1)  # Shorter than the interval between renewals.

    with EmbeddedBroker(config=limits) as broker:
        topic, servers = broker.topic("tasks"), broker.bootstrap_servers
        earliest = {"share.auto.offset.reset": "earliest"}
        Admin(bootstrap_servers=servers).set_configs(earliest, group=topic)
        fill(servers, topic, 40)
        consumer_of(servers, topic).run(handle, concurrency=2, stop=stop)
        with consumer_of(servers, topic) as other:
            assert all(message.value != 0 for message in other.poll(3.0))
    assert seen.count((0, 1)) == 1
    assert not any(count > 1 for _, count in seen)


def test_a_consumer_takes_as_many_batches_as_it_is_told_records(servers: str, queue: str) -> None:
    for _ in range(6):
        fill(servers, queue, 1)
    with consumer_of(servers, queue, max_poll_records=2) as consumer:
        while not (messages := consumer.poll()):
            pass
        assert len(messages) == 2
