"""Consumes a topic from its beginning with confluent-kafka, without a group."""

import time

import cyclopts
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from benchmarks.loads.frames import LoadError
from benchmarks.loads.outcome import report
from benchmarks.loads.tls import client_settings

CHUNK = 10_000
SILENCE_SECONDS_MAX = 120.0


def main(*, address: str, topic: str, count: int, partitions: int = 1, authority: str = "") -> None:
    """Reads `count` messages; over TLS if `authority` is given.

    The clock runs from the first response to the last message.
    """
    consumer = Consumer(
        {
            **client_settings(address, authority),
            "group.id": "benchmark",
            "enable.auto.commit": False,
            "enable.partition.eof": False,
            "check.crcs": False,
            "queued.min.messages": 1_000_000,
            "fetch.queue.backoff.ms": 1,
        }
    )
    consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in range(partitions)])
    received, size = _receive(consumer, 1)
    start = time.perf_counter()
    while received < count:
        more, more_size = _receive(consumer, CHUNK)
        received += more
        size += more_size
    elapsed = time.perf_counter() - start
    consumer.close()
    report(
        messages_per_second=received / elapsed,
        megabytes_per_second=size / elapsed / 1e6,
        messages=received,
        bytes=size,
        seconds=elapsed,
    )


def _receive(consumer: Consumer, count: int) -> tuple[int, int]:
    messages = consumer.consume(count, SILENCE_SECONDS_MAX if count == 1 else 0.05)
    deadline = time.perf_counter() + SILENCE_SECONDS_MAX
    while not messages and time.perf_counter() < deadline:
        messages = consumer.consume(count, 0.05)
    if not messages:
        raise LoadError("nothing arrived")
    if messages[-1].error():
        raise LoadError(str(messages[-1].error()))
    return len(messages), sum(map(len, messages))


if __name__ == "__main__":
    cyclopts.run(main)
