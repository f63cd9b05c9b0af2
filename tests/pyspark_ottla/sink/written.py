"""A sink's output, as a read_committed consumer sees it."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ottla.client.wire.cluster import Cluster
from ottla.client.wire.offsets import LATEST, list_offsets
from ottla.client.wire.reading import read_records
from ottla.protocol.topics import TopicPartition
from ottla.records.builder import Record
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
        topic_partition.partition: list(read_records(cluster, topic_partition, 0, end or 0))
        for topic_partition, end in ends.items()
    }


def values(cluster: Cluster, topic: str) -> list[str]:
    """Of all partitions, sorted."""
    return sorted(
        (record.value or b"").decode()
        for written in records(cluster, topic).values()
        for record in written
    )
