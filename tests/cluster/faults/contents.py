"""All records of a topic, as a new client reads them."""

import time
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from tests.cluster.faults.history import Partition
from tests.cluster.faults.workload import NO_LOGIN, consumer_config, partition_of, record_of

SILENCE_S = 120.0
_BATCH = 5_000


class Unreadable(Exception):
    """A partition could not be read to its end."""


def read_topic(
    bootstrap: str,
    topic: str,
    partitions: int,
    *,
    committed_only: bool = False,
    login: Mapping[str, object] = NO_LOGIN,
) -> dict[Partition, list[tuple[int, bytes]]]:
    """Offsets and values by partition, at least up to the current end.

    Raises Unreadable if reading stalls.
    """
    isolation = "read_committed" if committed_only else "read_uncommitted"
    consumer = Consumer(
        {
            **consumer_config(bootstrap, "contents", login),
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    topic_partitions = [Partition(topic, partition) for partition in range(partitions)]
    try:
        ends = {
            topic_partition: _end_offset(consumer, topic_partition)
            for topic_partition in topic_partitions
        }
        consumer.assign(
            [TopicPartition(*topic_partition, 0) for topic_partition in topic_partitions]
        )
        return _read(consumer, ends)
    finally:
        consumer.close()


def _read(
    consumer: Consumer, ends: dict[Partition, int]
) -> dict[Partition, list[tuple[int, bytes]]]:
    """While others write, the end moves; the last record may be a marker, which is not returned."""
    records: dict[Partition, list[tuple[int, bytes]]] = {
        topic_partition: [] for topic_partition in ends
    }
    unread = set(ends)
    heard_at = time.monotonic()
    while unread:
        if time.monotonic() > heard_at + SILENCE_S:
            raise Unreadable(f"cannot be read to the end: {sorted(unread)} of {ends}")
        for message in consumer.consume(_BATCH, timeout=0.5):
            topic_partition, error = partition_of(message), message.error()
            if error is None:
                offset, value = record_of(message)
                records[topic_partition].append((offset, value))
                heard_at = time.monotonic()
                if offset + 1 >= ends[topic_partition]:
                    unread.discard(topic_partition)
            elif error.code() == KafkaError._PARTITION_EOF:
                unread.discard(topic_partition)
    return records


def _end_offset(consumer: Consumer, topic_partition: Partition) -> int:
    """A new leader does not know its end offset at once."""
    deadline = time.monotonic() + SILENCE_S
    while True:
        try:
            _, end_offset = consumer.get_watermark_offsets(
                TopicPartition(*topic_partition), timeout=10
            )
        except KafkaException as error:
            if time.monotonic() > deadline:
                raise Unreadable(
                    f"the end of {topic_partition} cannot be found: {error}"
                ) from error
        else:
            return end_offset
