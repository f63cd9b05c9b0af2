"""Consumes a topic from its beginning through a share group, with confluent-kafka.

Records are accepted by the next poll. The clock runs from the first delivery to the answer to the
last acknowledgement.
"""

import time
import uuid

import cyclopts
from confluent_kafka import ShareConsumer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from benchmarks.loads.frames import LoadError
from benchmarks.loads.outcome import report

SILENCE_SECONDS_MAX = 120.0


def main(*, address: str, topic: str, count: int, seconds: float = 60.0) -> None:
    """Takes `count` records, or as many as arrive in `seconds`."""
    group = f"share-{uuid.uuid4()}"
    _start_at_the_beginning(address, group)
    consumer = ShareConsumer({"bootstrap.servers": address, "group.id": group})
    consumer.subscribe([topic])
    first = _receive(consumer)
    delivered, polls, start = 0, 0, time.perf_counter()
    end = start + seconds
    while first + delivered < count and time.perf_counter() < end:
        delivered += _receive(consumer)
        polls += 1
    _commit(consumer)
    elapsed = time.perf_counter() - start
    consumer.close()
    report(
        deliveries_per_second=delivered / elapsed,
        deliveries=first + delivered,
        polls=polls,
        seconds=elapsed,
    )


def _start_at_the_beginning(address: str, group: str) -> None:
    operation = AlterConfigOpType.SET
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=operation)
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": address})
    for altered in admin.incremental_alter_configs([resource]).values():
        altered.result(SILENCE_SECONDS_MAX)


def _receive(consumer: ShareConsumer) -> int:
    deadline = time.perf_counter() + SILENCE_SECONDS_MAX
    while time.perf_counter() < deadline:
        messages = list(consumer.poll(1.0))
        for message in messages:
            if message.error():
                raise LoadError(str(message.error()))
        if messages:
            return len(messages)
    raise LoadError("nothing arrived")


def _commit(consumer: ShareConsumer) -> None:
    for partition, failure in consumer.commit_sync(SILENCE_SECONDS_MAX).items():
        if failure is not None:
            raise LoadError(f"{partition} was not acknowledged: {failure}")


if __name__ == "__main__":
    cyclopts.run(main)
