"""Whether a table has every record of a topic once, by their offsets.

What is compared is where the table says that it goes to, and what the topic still has: records that
were deleted from the topic cannot be proved, and of a compacted one those that are gone.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.types import StructType

from ottla.client.wire.cluster import TopicPartition
from ottla.client.wire.offsets import EARLIEST, LATEST
from pyspark_ottla.columns import COLUMNS
from pyspark_ottla.offset_ranges import OffsetRange
from pyspark_ottla.positions import known_offsets
from pyspark_ottla.range_reader import read_range
from pyspark_ottla.source_options import SERVERS, SourceOptions, Use, parse_source_options
from pyspark_ottla.tables.address import TableError
from pyspark_ottla.tables.locations import open_location
from pyspark_ottla.tables.table import Table, TableNotFound
from pyspark_ottla.tables.time_travel import ends_of

_PLACE_COLUMNS = ["_topic", "_partition", "_offset"]
_SHOWN = 5  # Offsets of a kind.


@dataclass(frozen=True)
class Checked:
    """Of one partition."""

    partition: int
    rows: int
    end: int  # The offset that the table goes to.
    proved: int  # Rows that are records of the topic.
    missing: list[int]  # Offsets of records that the table lacks.
    twice: list[int]
    unknown: int  # Rows whose records the topic has no more.

    @property
    def is_right(self) -> bool:
        return not self.missing and not self.twice


def check_table(table: Table, topic: str, bootstrap_servers: str) -> list[Checked]:
    """TableError for one that cannot be checked by offsets."""
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
    places = [TopicPartition(topic, partition) for partition in ends]
    with options.connect() as cluster:
        options.subscription.validate_found(options.subscription.find_topics(cluster))
        firsts = known_offsets(cluster, dict.fromkeys(places, EARLIEST), options.isolation)
        lasts = known_offsets(cluster, dict.fromkeys(places, LATEST), options.isolation)
    nothing = np.zeros(0, np.int64)
    return [
        _check(
            options,
            place,
            rows.get(place.partition, nothing),
            ends[place.partition],
            (firsts[place], lasts[place]),
        )
        for place in sorted(places)
    ]


def _check(
    options: SourceOptions,
    place: TopicPartition,
    rows: Any,
    end: int,
    held: tuple[int, int],
) -> Checked:
    first, last = held
    found, counts = np.unique(rows, return_counts=True)
    # A table may begin later than the topic did: at the first record that it has.
    start = max(first, int(found[0])) if len(found) else first
    records = _offsets_of_topic(options, place, start, min(end, last))
    return Checked(
        partition=place.partition,
        rows=len(rows),
        end=end,
        proved=int(np.isin(found, records).sum()),
        missing=np.setdiff1d(records, found)[:_SHOWN].tolist(),
        twice=found[counts > 1][:_SHOWN].tolist(),
        unknown=int((~np.isin(found, records)).sum()),
    )


def _offsets_of_topic(options: SourceOptions, place: TopicPartition, start: int, end: int) -> Any:
    if start >= end:
        return np.zeros(0, np.int64)
    columns = StructType([COLUMNS["offset"]])
    batches = read_range(options, columns, OffsetRange(*place, start, end, None))
    parts = [batch.column("offset").to_numpy() for batch in batches]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _offsets_of_table(table: Table, topic: str) -> dict[int, Any]:
    schema = table.schema()
    if schema is None:
        raise TableNotFound(f"there is no table {table.address}")
    if not set(_PLACE_COLUMNS) <= set(schema.fieldNames()):
        raise TableError("the table has no columns _topic, _partition and _offset to check by")
    parts: dict[int, list[Any]] = {}
    for location in table.files():
        filesystem, path = open_location(location)
        with pq.ParquetFile(path, filesystem=filesystem) as file:
            for batch in file.iter_batches(columns=_PLACE_COLUMNS):
                frame = batch.filter(pc.equal(batch.column("_topic"), topic))
                partitions = frame.column("_partition").to_numpy()
                offsets = frame.column("_offset").to_numpy()
                for partition in np.unique(partitions).tolist():
                    parts.setdefault(partition, []).append(offsets[partitions == partition])
    return {partition: np.concatenate(found) for partition, found in parts.items()}


def _ends_of_table(table: Table, topic: str) -> dict[int, int]:
    ends: dict[int, int] = {}
    for version in reversed(list(table.versions())):
        for place, end in ends_of(version).items():
            if place.topic == topic:
                ends[place.partition] = max(end, ends.get(place.partition, 0))
    return ends
