"""The input of the program `copy_topic`, and its expected output."""

import time

from tests.client.topics import create_topic
from tests.pyspark_ottla.rows import write

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.records.builder import Record

ROWS = 100  # In each of two partitions.
PRINTED = {"rows": 2 * ROWS, "later": 10, "keys": 7}


def make_topics(cluster: Cluster) -> tuple[str, str]:
    """Source and target."""
    source, target = create_topic(cluster, partitions=2), create_topic(cluster, partitions=2)
    now_ms = time.time_ns() // 1_000_000  # Retention removes older ones, sooner or later.
    for partition in range(2):
        records = [
            Record(timestamp=now_ms, key=b"k%d" % (index % 7), value=b"%d-%d" % (partition, index))
            for index in range(ROWS)
        ]
        write(cluster, TopicPartition(source, partition), *records)
    return source, target


def written() -> list[str]:
    """The values in the target, sorted, each once."""
    copied = [f"{partition}-{index}" for partition in range(2) for index in range(ROWS)]
    again = [f"again 0-{index}" for index in range(ROWS)]
    return sorted(copied + again)
