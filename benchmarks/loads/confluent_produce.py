"""Produces with confluent-kafka as fast as it can, and waits until the broker has everything.

Only readable messages count: the clock stops when the end offsets of the partitions show every
message, even with acks=0.
"""

import os
import time

import cyclopts
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from benchmarks.loads.frames import LoadError
from benchmarks.loads.outcome import report
from benchmarks.loads.tls import client_settings

CHUNK = 500  # Messages handed to the client in one call.
QUEUE_BYTES = 64 << 20
ARRIVAL_SECONDS_MAX = 120.0


def main(
    *,
    address: str,
    topic: str,
    partitions: int = 1,
    value_size: int = 1024,
    acks: str = "all",
    seconds: float = 4.0,
    count: int = 0,
    linger_ms: float = 5.0,
    idempotent: int = 0,
    authority: str = "",
) -> None:
    """Sends for `seconds`, or `count` messages; over TLS if `authority` is given."""
    settings = client_settings(address, authority)
    producer = Producer(
        {
            **settings,
            "acks": acks,
            "linger.ms": linger_ms,
            "enable.idempotence": bool(idempotent),
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": QUEUE_BYTES >> 10,
        }
    )
    producer.list_topics(topic, timeout=120)
    watermarks = Consumer({**settings, "group.id": "benchmark-watermarks"})
    before = _end_offsets(watermarks, topic, partitions)
    start = time.perf_counter()
    sent = _send(producer, topic, partitions, value_size, seconds, count)
    if producer.flush(ARRIVAL_SECONDS_MAX):
        raise LoadError("messages are left that the broker did not acknowledge")
    _wait_for_arrival(watermarks, topic, partitions, before + sent)
    elapsed = time.perf_counter() - start
    watermarks.close()
    report(
        messages_per_second=sent / elapsed,
        megabytes_per_second=sent * value_size / elapsed / 1e6,
        messages=sent,
        bytes=sent * value_size,
        seconds=elapsed,
    )


def _send(
    producer: Producer, topic: str, partitions: int, value_size: int, seconds: float, count: int
) -> int:
    chunk = max(1, min(CHUNK, (1 << 20) // value_size))
    messages = [{"value": os.urandom(value_size)} for _ in range(chunk)]
    queued_max = min(500_000, QUEUE_BYTES // value_size) - chunk
    end = time.perf_counter() + seconds
    sent = turn = 0
    while sent < count if count else time.perf_counter() < end:
        if len(producer) > queued_max:
            producer.poll(0.001)
            continue
        sent += producer.produce_batch(topic, messages, partition=turn % partitions)
        producer.poll(0)
        turn += 1
    return sent


def _wait_for_arrival(consumer: Consumer, topic: str, partitions: int, expected: int) -> None:
    deadline = time.perf_counter() + ARRIVAL_SECONDS_MAX
    while (arrived := _end_offsets(consumer, topic, partitions)) < expected:
        if time.perf_counter() > deadline:
            raise LoadError(f"{expected - arrived} messages did not arrive")
    if arrived > expected:
        raise LoadError(f"{arrived - expected} messages more than were sent")


def _end_offsets(consumer: Consumer, topic: str, partitions: int) -> int:
    return sum(_end_offset(consumer, topic, partition) for partition in range(partitions))


def _end_offset(consumer: Consumer, topic: str, partition: int) -> int:
    """The end offset, from a leader that may not know yet that it leads."""
    deadline = time.perf_counter() + ARRIVAL_SECONDS_MAX
    while True:
        try:
            topic_partition = TopicPartition(topic, partition)
            offset: int = consumer.get_watermark_offsets(topic_partition, timeout=120)[1]
            return offset
        except KafkaException:
            if time.perf_counter() > deadline:
                raise


if __name__ == "__main__":
    cyclopts.run(main)
