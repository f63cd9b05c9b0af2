"""Producers that write numbers, survive the broker's death, and remember what it acknowledged."""

import itertools
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from confluent_kafka import KafkaError, Message, Producer
from tests.clients.requests import produce, produced
from tests.clients.wire import Wire

from ottla.protocol.errors import ErrorCode
from ottla.records.builder import Record, build_batch

KEYS_COUNT = 7
IN_FLIGHT_MAX = 200
GIVE_UP_MS = 120_000

TopicPartition = tuple[str, int]  # Topic and partition.


def key_of(producer: str, number: int) -> bytes:
    return b"%s:%d" % (producer.encode(), number % KEYS_COUNT)


def producer_of(key: bytes) -> str:
    return key.partition(b":")[0].decode()


class NumberWriter(threading.Thread):
    """Writes 0, 1, 2 ... to its partitions in turn until told to stop."""

    def __init__(self, name: str, bootstrap: str, topic_partitions: list[TopicPartition]) -> None:
        super().__init__(name=name, daemon=True)
        self.bootstrap = bootstrap
        self.acknowledged: dict[TopicPartition, dict[int, int]] = defaultdict(
            dict
        )  # Number to offset.
        self.count = 0  # Of acknowledgements.
        self.failure: BaseException | None = None
        self._topic_partitions = topic_partitions
        self._ending = threading.Event()

    def end(self) -> None:
        self._ending.set()
        self.join()
        if self.failure is not None:
            raise self.failure

    def run(self) -> None:
        try:
            self.write_all()
        except BaseException as error:
            self.failure = error

    def write_all(self) -> None:
        raise NotImplementedError

    def numbers(self) -> Iterator[tuple[TopicPartition, int]]:
        for number in itertools.count():
            for topic_partition in self._topic_partitions:
                if self._ending.is_set():
                    return
                yield topic_partition, number

    def on_acknowledged(self, topic_partition: TopicPartition, number: int, offset: int) -> None:
        assert number not in self.acknowledged[topic_partition]
        self.acknowledged[topic_partition][number] = offset
        self.count += 1


class IdempotentWriter(NumberWriter):
    """librdkafka with enable.idempotence: retries by itself, and may neither lose nor duplicate."""

    def write_all(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "message.timeout.ms": GIVE_UP_MS,
                "log_level": 0,
            }
        )
        for (topic, partition), number in self.numbers():
            producer.produce(
                topic,
                b"%d" % number,
                key_of(self.name, number),
                partition,
                on_delivery=self._on_delivery,
            )
            producer.poll(0)
            while len(producer) >= IN_FLIGHT_MAX and not self._ending.is_set():
                producer.poll(0.01)
        assert producer.flush(GIVE_UP_MS / 1000) == 0

    def _on_delivery(self, error: KafkaError | None, message: "Message[Any, Any]") -> None:
        if error is not None:
            self.failure = AssertionError(f"{self.name}: {error}")
            self._ending.set()
            return
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        self.on_acknowledged((topic, partition), int(message.value() or b""), offset)


class PlainWriter(NumberWriter):
    """acks=1 on a raw socket; requests in flight when the broker died are not resent."""

    def write_all(self) -> None:
        numbers = self.numbers()
        while not self._ending.is_set():
            try:
                with Wire(self.bootstrap) as wire:
                    for topic_partition, number in numbers:
                        self._write(wire, topic_partition, number)
            except (OSError, EOFError, struct.error):
                pass  # The broker is down; it will be restarted.

    def _write(self, wire: Wire, topic_partition: TopicPartition, number: int) -> None:
        topic, partition = topic_partition
        now_ms = time.time_ns() // 1_000_000
        record = Record(timestamp=now_ms, key=key_of(self.name, number), value=b"%d" % number)
        request = produce(topic, bytes(build_batch([record])), partition=partition, acks=1)
        answer = produced(wire.call(request))
        assert answer.error_code in (ErrorCode.none, ErrorCode.not_leader_or_follower), answer
        if answer.error_code == ErrorCode.none:
            self.on_acknowledged(topic_partition, number, answer.base_offset)
