"""Compares `ottla.client` with bare confluent-kafka, in turns in one process.

Both do the same for their caller: every delivery is reported, every value is read.
"""

import asyncio
import statistics
import time
from collections.abc import Callable
from typing import Any

import confluent_kafka
import cyclopts
from confluent_kafka.aio import AIOProducer

from benchmarks.loads.outcome import report
from ottla.client import Consumer, Producer, aio

VALUE = b"x" * 100
SENDS_PER_POLL = 100
RECORDS_PER_POLL = 500
Run = Callable[[str, str, int], float]  # Takes address, topic and count; returns seconds.


def _settings(address: str) -> dict[str, Any]:
    """The facade's settings."""
    return {
        "bootstrap.servers": address,
        "linger.ms": 5,
        "queue.buffering.max.messages": 0,
        "queue.buffering.max.kbytes": 262_144,
        "enable.idempotence": True,
    }


def produce_bare(address: str, topic: str, count: int) -> float:
    producer = confluent_kafka.Producer(_settings(address))
    failures = []

    def on_delivery(error: object, _: object) -> None:
        if error is not None:
            failures.append(error)

    producer.produce(topic, VALUE)
    producer.flush()  # Connects.
    start = time.perf_counter()
    for number in range(count):
        producer.produce(topic, VALUE, on_delivery=on_delivery)
        if not number % SENDS_PER_POLL:
            producer.poll(0)
    producer.flush()
    return time.perf_counter() - start


def produce(address: str, topic: str, count: int) -> float:
    with Producer(bootstrap_servers=address) as producer:
        producer.send(topic, VALUE).result()
        start = time.perf_counter()
        for _ in range(count):
            producer.send(topic, VALUE)
        producer.flush()
        return time.perf_counter() - start


def _bare_consumer(address: str, topic: str) -> confluent_kafka.Consumer:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": address, "group.id": "benchmark", "enable.auto.commit": False}
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    consumer.consume(1, 60)
    return consumer


def consume_bare(address: str, topic: str, count: int) -> float:
    """One message at a time, as in confluent-kafka's own examples."""
    consumer = _bare_consumer(address, topic)
    start = time.perf_counter()
    received = size = 1
    while received < count:
        message = consumer.poll(1.0)
        if message is None:
            continue
        if message.error():
            raise confluent_kafka.KafkaException(message.error())
        size += len(message.value())
        received += 1
    seconds = time.perf_counter() - start
    consumer.close()
    return seconds


def consume(address: str, topic: str, count: int) -> float:
    with Consumer(bootstrap_servers=address).assign({(topic, 0): 0}) as consumer:
        consumer.poll(60, max_records=1)
        start = time.perf_counter()
        received = size = 1
        for message in consumer:
            size += len(message.value)
            received += 1
            if received == count:
                break
        return time.perf_counter() - start


def poll_bare(address: str, topic: str, count: int) -> float:
    consumer = _bare_consumer(address, topic)
    start = time.perf_counter()
    received = size = 1
    while received < count:
        # It waits until it has as many as requested.
        for message in consumer.consume(min(RECORDS_PER_POLL, count - received), 1.0):
            if message.error():
                raise confluent_kafka.KafkaException(message.error())
            size += len(message.value())
            received += 1
    seconds = time.perf_counter() - start
    consumer.close()
    return seconds


def poll(address: str, topic: str, count: int) -> float:
    with Consumer(bootstrap_servers=address).assign({(topic, 0): 0}) as consumer:
        consumer.poll(60, max_records=1)
        start = time.perf_counter()
        received = size = 1
        while received < count:
            for message in consumer.poll():
                size += len(message.value)
                received += 1
        return time.perf_counter() - start


def produce_async_bare(address: str, topic: str, count: int) -> float:
    async def run() -> float:
        producer = AIOProducer(_settings(address))
        first = await producer.produce(topic, VALUE)
        await producer.flush()
        await first
        start = time.perf_counter()
        futures = [await producer.produce(topic, VALUE) for _ in range(count)]
        await producer.flush()
        await asyncio.gather(*futures)
        seconds = time.perf_counter() - start
        await producer.close()
        return seconds

    return asyncio.run(run())


def produce_async(address: str, topic: str, count: int) -> float:
    async def run() -> float:
        async with aio.Producer(bootstrap_servers=address) as producer:
            await (await producer.send(topic, VALUE))
            start = time.perf_counter()
            futures = [await producer.send(topic, VALUE) for _ in range(count)]
            await producer.flush()
            await asyncio.gather(*futures)
            return time.perf_counter() - start

    return asyncio.run(run())


KINDS: dict[str, tuple[Run, Run]] = {
    "produce": (produce, produce_bare),
    "consume": (consume, consume_bare),
    "poll": (poll, poll_bare),
    "produce-async": (produce_async, produce_async_bare),
}


def main(*, address: str, topic: str, kind: str, count: int = 100_000, rounds: int = 5) -> None:
    """Reports the facade's time as a multiple of the bare client's, the median of rounds."""
    facade, bare = KINDS[kind]
    if kind in ("consume", "poll"):
        produce(address, topic, count)
    facade(address, topic, count), bare(address, topic, count)
    ratios, rates = [], []
    for number in range(rounds):
        runs = (facade, bare) if number % 2 else (bare, facade)
        seconds = {run: run(address, topic, count) for run in runs}
        ratios.append(seconds[facade] / seconds[bare])
        rates.append(count / seconds[facade])
    report(times_bare=statistics.median(ratios), messages_per_second=statistics.median(rates))


if __name__ == "__main__":
    cyclopts.run(main)
