"""A sink's output, as a read_committed consumer sees it."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ottla.client.wire.cluster import Cluster
from ottla.client.wire.fetching import Fetcher
from ottla.client.wire.offsets import LATEST, Isolation, list_offsets
from ottla.protocol.topics import TopicPartition
from ottla.records.builder import Record
from ottla.records.decoder import iterate_records
from ottla.records.isolation import scan_batches
from pyspark_ottla.sink.columns import Portion


def portion(*values: str, **columns: Sequence[Any]) -> Portion:
    arrays = {name: pa.array(items) for name, items in columns.items()}
    return Portion.of_batches([pa.RecordBatch.from_pydict({"value": list(values), **arrays})])


def records(cluster: Cluster, topic: str) -> dict[int, list[Record]]:
    """Records by partition. Waits for decided transactions; no others may be open."""
    topic_partitions = [
        TopicPartition(topic, index) for index in cluster.topics([topic])[topic].leaders
    ]
    ends = list_offsets(cluster, dict.fromkeys(topic_partitions, LATEST))
    return {
        topic_partition.partition: _read(cluster, topic_partition, ends[topic_partition] or 0)
        for topic_partition in topic_partitions
    }


def _read(cluster: Cluster, topic_partition: TopicPartition, end: int) -> list[Record]:
    found, offset = [], 0
    with Fetcher(cluster, topic_partition, Isolation.READ_COMMITTED) as fetcher:
        while offset < end:
            fetched = fetcher.fetch(offset)
            scan = scan_batches(fetched.records, offset, end, fetched.aborted)
            for batch in scan.batches:
                found += list(iterate_records(fetched.records, batch.position))
            offset = scan.next_offset
    return found


def values(cluster: Cluster, topic: str) -> list[str]:
    """Of all partitions, sorted."""
    return sorted(
        (record.value or b"").decode()
        for written in records(cluster, topic).values()
        for record in written
    )
