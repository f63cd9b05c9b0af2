import threading
import time
from typing import Any

import pytest
from confluent_kafka import KafkaException

from ottla.client import (
    AckMode,
    BufferFull,
    Partition,
    Producer,
    ProducerConfig,
    RecordMetadata,
    WhenFull,
    key_modulo,
    round_robin,
)
from ottla.client.errors import NotFlushed, NotStarted
from ottla.client.serializers import to_json, to_text
from ottla.testing import EmbeddedBroker

WAIT_S = 300.0


def test_send_tells_where_the_record_is(broker: EmbeddedBroker, servers: str) -> None:
    topic = broker.topic("orders", partitions=2)
    with Producer(ProducerConfig(bootstrap_servers=[servers])) as producer:
        first = producer.send(topic, b"lamp", key=b"anna", partition=1, timestamp=1234)
        second = producer.send(topic, b"desk", partition=1, headers={"from": b"ben"})
        assert first.result(WAIT_S) == RecordMetadata(topic, 1, 0)
        assert second.result(WAIT_S).offset == 1
        assert first.done()
        assert first.exception() is None
    lamp, desk = broker.records(topic)
    assert (lamp.key, lamp.value, lamp.timestamp, lamp.partition) == (b"anna", b"lamp", 1234, 1)
    assert desk.header("from") == b"ben"
    assert desk.header("to") is None


def test_objects_are_serialized_by_type(broker: EmbeddedBroker, servers: str) -> None:
    topic = broker.topic("orders")
    with Producer(bootstrap_servers=servers) as producer:
        for value in (b"bytes", "text", {"item": "lamp"}, 7, None, bytearray(b"more")):
            producer.send(topic, value, key="one")
    values = [message.value for message in broker.records(topic)]
    assert values == [b"bytes", b"text", b'{"item":"lamp"}', b"7", None, b"more"]


def test_own_serializers(broker: EmbeddedBroker, servers: str) -> None:
    topic = broker.topic("orders")
    settings: dict[str, Any] = {"key_serializer": to_text, "value_serializer": to_json}
    with Producer(bootstrap_servers=servers, **settings) as producer:
        producer.send(topic, "text", key=12)
    (message,) = broker.records(topic)
    assert (message.key, message.value) == (b"12", b'"text"')


def test_a_record_that_is_refused(broker: EmbeddedBroker, servers: str) -> None:
    topic = broker.topic("orders")
    called: list[object] = []
    with Producer(bootstrap_servers=servers) as producer:
        broker.faults.fail_next("Produce", "MESSAGE_TOO_LARGE")
        delivery = producer.send(topic, b"lamp")
        delivery.add_done_callback(called.append)
        with pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE"):
            delivery.result(WAIT_S)
        assert isinstance(delivery.exception(), KafkaException)
    assert called == [delivery]
    delivery.add_done_callback(called.append)
    assert called == [delivery, delivery]


def test_many_threads_wait_for_one_delivery(broker: EmbeddedBroker, servers: str) -> None:
    topic = broker.topic("orders")
    broker.faults.delay_next("Produce", 0.3)
    results: list[RecordMetadata] = []
    with Producer(bootstrap_servers=servers) as producer:
        delivery = producer.send(topic, b"lamp")
        threads = [
            threading.Thread(target=lambda: results.append(delivery.result(WAIT_S)))
            for _ in range(5)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == [RecordMetadata(topic, 0, 0)] * 5


def test_waiting_ends_in_time(broker: EmbeddedBroker, servers: str) -> None:
    topic = broker.topic("orders")
    broker.faults.delay_next("Produce", 2.0)
    with Producer(bootstrap_servers=servers) as producer:
        delivery = producer.send(topic, b"lamp")
        with pytest.raises(TimeoutError):
            delivery.result(0.01)
        with pytest.raises(NotFlushed, match="1 records are not delivered"):
            producer.flush(0.01)
    assert delivery.result(0).offset == 0


def send_many(producer: Producer, topic: str) -> None:
    for _ in range(1000):
        producer.send(topic, bytes(1024))


@pytest.mark.parametrize("when_full", WhenFull)
def test_the_buffer_is_bounded(broker: EmbeddedBroker, servers: str, when_full: WhenFull) -> None:
    topic = broker.topic("orders")
    config = ProducerConfig(
        bootstrap_servers=servers, buffer_memory=64 * 1024, when_full=when_full, max_block_ms=100
    )
    broker.faults.delay_next("Produce", 3.0)
    with Producer(config) as producer:
        begin = time.monotonic()
        with pytest.raises(BufferFull):
            send_many(producer, topic)
        waited = time.monotonic() - begin
        assert when_full is WhenFull.RAISE or waited >= 0.1


def test_a_blocked_sender_goes_on_when_there_is_room(broker: EmbeddedBroker, servers: str) -> None:
    topic = broker.topic("orders")
    with Producer(bootstrap_servers=servers, buffer_memory=64 * 1024) as producer:
        for _ in range(500):
            producer.send(topic, bytes(1024))
    assert len(broker.records(topic)) == 500


# As in the Java client: Utils.toPositive(Utils.murmur2(key)) % 7.
JAVA_PARTITIONS = {b"21": 5, b"foobar": 6, b"a-little-bit-long-string": 6, b"abc": 5}


def test_keys_are_where_the_java_client_has_them(broker: EmbeddedBroker, servers: str) -> None:
    topic = broker.topic("orders", partitions=7)
    with Producer(bootstrap_servers=servers) as producer:
        written = {key: producer.send(topic, b"", key=key) for key in JAVA_PARTITIONS}
        producer.flush()
        found = {key: future.result(WAIT_S).partition for key, future in written.items()}
    assert found == {key: _murmur2(key) % 7 for key in JAVA_PARTITIONS}


def _murmur2(key: bytes) -> int:
    """The Java client's hash, as an unsigned number."""
    mask, factor = 0xFFFFFFFF, 0x5BD1E995
    value = 0x9747B28C ^ len(key)
    whole = len(key) // 4 * 4
    for position in range(0, whole, 4):
        word = int.from_bytes(key[position : position + 4], "little") * factor & mask
        word = (word ^ (word >> 24)) * factor & mask
        value = (value * factor & mask) ^ word
    if rest := key[whole:]:
        value = (value ^ int.from_bytes(rest, "little")) * factor & mask
    value = (value ^ (value >> 13)) * factor & mask
    return (value ^ (value >> 15)) & 0x7FFFFFFF


def test_partitioners_of_python(broker: EmbeddedBroker, servers: str) -> None:
    topic = broker.topic("orders", partitions=3)

    def partitions_of(partitioner: Any, *keys: Any) -> list[int]:
        with Producer(bootstrap_servers=servers, partitioner=partitioner) as producer:
            return [producer.send(topic, b"", key=key).result(WAIT_S).partition for key in keys]

    assert partitions_of(round_robin(), None, "a", "a", "b") == [0, 1, 2, 0]
    assert partitions_of(key_modulo, 3, 4, 8, -1) == [0, 1, 2, 2]
    assert partitions_of(lambda _topic, key, count: len(key) % count, "a", "bb", "ccc") == [1, 2, 0]
    assert set(partitions_of(Partition.STICKY, *(str(number) for number in range(3)))) <= {0, 1, 2}
    with pytest.raises(TypeError, match="integers"):
        partitions_of(key_modulo, "a")


def test_acks(servers: str) -> None:
    settings = ProducerConfig(bootstrap_servers=servers, acks=AckMode.LEADER).settings()
    assert (settings["acks"], settings["enable.idempotence"]) == ("1", False)
    settings = ProducerConfig(bootstrap_servers=servers).settings()
    assert (settings["acks"], settings["enable.idempotence"]) == ("all", True)


def test_a_producer_that_is_not_started() -> None:
    with pytest.raises(NotStarted, match=r"call start\(\)"):
        Producer().send("orders", b"lamp")
    with pytest.raises(TypeError, match="not both"):
        Producer(ProducerConfig(), acks=AckMode.ALL)


def fail_in_transaction(producer: Producer, topic: str) -> None:
    with producer.transaction():
        producer.send(topic, b"gone")
        raise ZeroDivisionError


def test_a_transaction_is_all_or_nothing(broker: EmbeddedBroker, servers: str) -> None:
    topic = broker.topic("orders")
    with Producer(bootstrap_servers=servers, transactional_id=topic) as producer:
        with producer.transaction():
            producer.send(topic, b"a")
            producer.send(topic, b"b")
        with pytest.raises(ZeroDivisionError):
            fail_in_transaction(producer, topic)
        with producer.transaction() as transaction:
            producer.send(topic, b"gone as well")
            transaction.abort()
        with producer.transaction():
            producer.send(topic, b"c")
    assert [message.value for message in broker.records(topic)] == [b"a", b"b", b"c"]


def test_deliver_after_is_a_header(broker: EmbeddedBroker, servers: str) -> None:
    topic = broker.topic("orders")
    with Producer(bootstrap_servers=servers) as producer:
        before = time.time_ns() // 1_000_000
        producer.send(topic, b"lamp", deliver_after=60, headers={"from": b"ben"})
    (message,) = broker.records(topic)
    deliver_at = message.header("ottla-deliver-at")
    assert deliver_at is not None
    assert before + 60_000 <= int(deliver_at) <= time.time_ns() // 1_000_000 + 60_000
    assert message.header("from") == b"ben"
    with Producer(bootstrap_servers=servers) as producer, pytest.raises(ValueError, match="past"):
        producer.send(topic, b"lamp", deliver_after=-1)
