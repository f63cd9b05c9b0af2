"""Checks by offsets that a table has every record of a topic once.

It compares the table up to its recorded end with what the topic still has: records deleted from the
topic cannot be verified, nor those removed by compaction.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.types import StructType

from ottla.client.wire.cluster import TopicPartition
from pyspark_ottla.cluster_options import SERVERS
from pyspark_ottla.columns import COLUMNS
from pyspark_ottla.offset_ranges import OffsetRange
from pyspark_ottla.positions import first_offsets, last_offsets
from pyspark_ottla.range_reader import read_range
from pyspark_ottla.source_options import SourceOptions, Use, parse_source_options
from pyspark_ottla.tables.address import TableError
from pyspark_ottla.tables.locations import open_location
from pyspark_ottla.tables.table import Table, TableNotFound
from pyspark_ottla.tables.time_travel import ends_of

_OFFSET_COLUMNS = ["_topic", "_partition", "_offset"]
_NOTHING = np.zeros(0, np.int64)
_SHOWN = 5  # Offsets of each kind.


@dataclass(frozen=True)
class Checked:
    """The result for one partition."""

    partition: int
    rows: int
    end: int  # Where the table ends.
    proved: int  # Rows that are records of the topic.
    missing: list[int]  # Offsets of records that the table lacks.
    twice: list[int]
    unknown: int  # Rows whose records are no longer in the topic.

    @property
    def is_right(self) -> bool:
        return not self.missing and not self.twice


def check_table(table: Table, topic: str, bootstrap_servers: str) -> list[Checked]:
    """Raises TableError if the table cannot be checked by offsets."""
    rows = _offsets_of_table(table, topic)
    ends = _ends_of_table(table, topic)
    if not ends:
        raise TableError(f"the table has no batches of topic {topic}")
    options = parse_source_options(
        {
            SERVERS: bootstrap_servers,
            "subscribe": topic,
            "kafka.isolation.level": "read_committed",
        },
        Use.BATCH,
    )
    topic_partitions = [TopicPartition(topic, partition) for partition in ends]
    with options.cluster.connect() as cluster:
        options.subscription.validate_found(options.subscription.find_topics(cluster))
        firsts = first_offsets(cluster, topic_partitions, options.isolation)
        lasts = last_offsets(cluster, topic_partitions, options.isolation)
    return [
        _check(
            options,
            topic_partition,
            rows.get(topic_partition.partition, _NOTHING),
            ends[topic_partition.partition],
            (firsts[topic_partition], lasts[topic_partition]),
        )
        for topic_partition in sorted(topic_partitions)
    ]


def _check(
    options: SourceOptions,
    topic_partition: TopicPartition,
    rows: Any,
    end: int,
    held: tuple[int, int],
) -> Checked:
    first, last = held
    found, counts = np.unique(rows, return_counts=True)
    # A table may begin later than the topic: at its first record.
    start = max(first, int(found[0])) if len(found) else first
    records = _offsets_of_topic(options, topic_partition, start, min(end, last))
    return Checked(
        partition=topic_partition.partition,
        rows=len(rows),
        end=end,
        proved=int(np.isin(found, records).sum()),
        missing=np.setdiff1d(records, found)[:_SHOWN].tolist(),
        twice=found[counts > 1][:_SHOWN].tolist(),
        unknown=int((~np.isin(found, records)).sum()),
    )


def _offsets_of_topic(
    options: SourceOptions, topic_partition: TopicPartition, start: int, end: int
) -> Any:
    if start >= end:
        return _NOTHING
    columns = StructType([COLUMNS["offset"]])
    batches = read_range(options, columns, OffsetRange(*topic_partition, start, end, None))
    parts = [batch.column("offset").to_numpy() for batch in batches]
    return np.concatenate([_NOTHING, *parts])


def _offsets_of_table(table: Table, topic: str) -> dict[int, Any]:
    schema = table.schema()
    if schema is None:
        raise TableNotFound(f"there is no table {table.address}")
    if not set(_OFFSET_COLUMNS) <= set(schema.fieldNames()):
        raise TableError("the table has no columns _topic, _partition and _offset to check by")
    parts: dict[int, list[Any]] = {}
    for location in table.files():
        filesystem, path = open_location(location)
        with pq.ParquetFile(path, filesystem=filesystem) as file:
            for batch in file.iter_batches(columns=_OFFSET_COLUMNS):
                frame = batch.filter(pc.equal(batch.column("_topic"), topic))
                partitions = frame.column("_partition").to_numpy()
                offsets = frame.column("_offset").to_numpy()
                for partition in np.unique(partitions).tolist():
                    parts.setdefault(partition, []).append(offsets[partitions == partition])
    return {partition: np.concatenate(found) for partition, found in parts.items()}


def _ends_of_table(table: Table, topic: str) -> dict[int, int]:
    ends: dict[int, int] = {}
    for version in reversed(list(table.versions())):
        for topic_partition, end in ends_of(version).items():
            if topic_partition.topic == topic:
                ends[topic_partition.partition] = max(end, ends.get(topic_partition.partition, 0))
    return ends
