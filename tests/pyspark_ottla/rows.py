"""Records to read, and the rows that a reader returns."""

from collections.abc import Iterable, Sequence
from typing import Any

from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.delete_records.v2.request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kio.schema.types import TopicName
from kio.static.primitive import i32, i64
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from ottla.client.wire.cluster import Cluster
from ottla.client.wire.offsets import LATEST, list_offsets
from ottla.client.wire.producing import produce
from ottla.protocol.times import milliseconds
from ottla.protocol.topics import TopicPartition
from ottla.records.builder import Record, build_batch
from pyspark_ottla.columns import COLUMNS

HOUR_MS = 3_600_000


def schema(*names: str) -> StructType:
    return StructType([COLUMNS[name] for name in names])


def write(
    cluster: Cluster,
    topic_partition: TopicPartition,
    *values: bytes | Record | None,
    **options: Any,
) -> None:
    """One batch."""
    records = [
        value if isinstance(value, Record) else Record(timestamp=HOUR_MS, value=value)
        for value in values
    ]
    produce(cluster, {topic_partition: build_batch(records, **options)})


def delete_records(cluster: Cluster, topic_partition: TopicPartition, before: int) -> None:
    partition = DeleteRecordsPartition(
        partition_index=i32(topic_partition.partition), offset=i64(before)
    )
    topic = DeleteRecordsTopic(name=TopicName(topic_partition.topic), partitions=(partition,))
    request = DeleteRecordsRequest(topics=(topic,), timeout=milliseconds(20_000))
    (answer,) = cluster.leader(topic_partition).call(request).topics[0].partitions
    assert not answer.error_code


def add_partitions(cluster: Cluster, topic: str, count: int) -> None:
    wanted = CreatePartitionsTopic(name=TopicName(topic), count=i32(count), assignments=None)
    request = CreatePartitionsRequest(
        topics=(wanted,), timeout=milliseconds(20_000), validate_only=False
    )
    (answer,) = cluster.any_broker().call(request).results
    assert not answer.error_code
    cluster.forget()
    list_offsets(cluster, {TopicPartition(topic, index): LATEST for index in range(count)})


def read_all(reader: Any, partitions: Sequence[InputPartition]) -> list[dict[str, Any]]:
    return [row for item in partitions for batch in reader.read(item) for row in batch.to_pylist()]


def ranges(partitions: Iterable[Any]) -> list[tuple[str, int, int]]:
    """Each one's partition, start and end."""
    flat = [part for item in partitions for part in getattr(item, "ranges", (item,))]
    return [(str(item.topic_partition), item.start, item.end) for item in flat]
