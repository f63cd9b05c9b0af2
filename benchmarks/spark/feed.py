"""Writes records to a topic at a constant rate until stopped: `feed.py ADDRESS TOPIC RATE`."""

import itertools
import sys
import time

from ottla.client.wire.cluster import Cluster
from ottla.client.wire.producing import produce
from ottla.protocol.topics import TopicPartition
from ottla.records.builder import Record, build_batch

INTERVAL_S = 0.01
VALUE = b"x" * 100


def main(address: str, topic: str, rows_per_second: int) -> None:
    count = max(1, int(rows_per_second * INTERVAL_S))
    with Cluster(address) as cluster:
        partitions = len(cluster.topics([topic])[topic].leaders)
        next_s = time.monotonic()
        for index in itertools.count():
            now_ms = time.time_ns() // 1_000_000
            records = [
                Record(timestamp=now_ms, key=b"%d" % row, value=VALUE) for row in range(count)
            ]
            produce(cluster, {TopicPartition(topic, index % partitions): build_batch(records)})
            next_s += INTERVAL_S
            time.sleep(max(0, next_s - time.monotonic()))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
