"""The parameters of a sync, and preparation of its table."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from ottla.client.wire.cluster import Cluster, Topic, TopicPartition
from ottla.client.wire.offsets import EARLIEST
from pyspark_ottla.cluster_options import SERVERS
from pyspark_ottla.columns import COLUMNS
from pyspark_ottla.offset_ranges import OffsetRange
from pyspark_ottla.positions import first_offsets, last_offsets
from pyspark_ottla.range_reader import read_range
from pyspark_ottla.source_options import SourceOptions, Use, parse_source_options
from pyspark_ottla.tables import locations
from pyspark_ottla.tables.address import TableError, directory_of, parse_address
from pyspark_ottla.tables.batch import validate_sink_id
from pyspark_ottla.tables.columns import prepare_table
from pyspark_ottla.tables.json_inference import complete, infer_fields
from pyspark_ottla.tables.maintenance import Maintenance
from pyspark_ottla.tables.partitioning import UNPARTITIONED, Partitioning, partitioning_of
from pyspark_ottla.tables.table import Table, open_table, validate_tasks
from pyspark_ottla.tables.topic_rows import TopicRows

SAMPLE_RECORDS = 1000  # Across all partitions, from the first ones on.


@dataclass(frozen=True)
class SyncPlan:
    topic: str
    table: str
    bootstrap_servers: str
    rows: TopicRows
    sink_id: str
    schema: str | None = None  # Of JSON values, in Spark's notation; None: from a sample.
    new_fields: bool = False
    start: str = "earliest"  # For a table without records of the topic.
    records_max: int | None = None  # Per batch.
    compact_every: int | None = None  # Batches.
    maintenance: Maintenance | None = None
    partitioning: Partitioning = UNPARTITIONED  # For a table that does not exist yet.
    commit_group: str | None = None
    fail_on_data_loss: bool = True  # Otherwise the table has gaps where records were lost.
    checkpoint: str | None = None  # None: in the table's directory.

    def __post_init__(self) -> None:
        validate_sink_id(self.sink_id)

    def validate(self) -> None:
        """Report certain errors before Spark is started, which takes seconds."""
        directory = directory_of(parse_address(self.table))
        if directory is not None:
            try:
                directory.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise TableError(
                    f"cannot keep a table in {directory}: {reason}; choose another with --to"
                ) from None
        _partitions(parse_source_options(self.source_options(), Use.STREAM), self.topic)

    def source_options(self) -> dict[str, str]:
        options = {
            SERVERS: self.bootstrap_servers,
            "subscribe": self.topic,
            "startingOffsets": self.start,
            "failOnDataLoss": str(self.fail_on_data_loss).lower(),
            # Aborted records must not get into the table.
            "kafka.isolation.level": "read_committed",
        }
        if self.records_max is not None:
            options["maxOffsetsPerTrigger"] = str(self.records_max)
        if self.commit_group is not None:
            options["commitGroup"] = self.commit_group
        return options

    def stream_options(self) -> dict[str, str]:
        """For the stream: a new checkpoint begins where the table ends."""
        options = self.source_options()
        last = open_table(self.table).last_batch(self.sink_id)
        ends = None if last is None else last.ends.get(self.topic)
        if ends:
            source = parse_source_options(options, Use.STREAM)
            starts = dict.fromkeys(_partitions(source, self.topic), EARLIEST) | dict(ends)
            options["startingOffsets"] = json.dumps({self.topic: starts})
        return options

    def checkpoint_location(self) -> str:
        if self.checkpoint is not None:
            return self.checkpoint
        return locations.join(open_table(self.table).location, "_ottla", "checkpoint", self.sink_id)

    def prepare_table(self) -> StructType:
        """Returns its columns. Adds missing columns, or creates the table if it must exist before
        files do.
        """
        validate_tasks(self.table)
        table = open_table(self.table)
        partitioning = self.table_partitioning()
        columns = self.rows.table_columns(self._fields(table))
        columns = StructType([*columns, *partitioning.fields()])
        return prepare_table(table, columns, add_columns=True, partition_by=partitioning.columns)

    def table_partitioning(self) -> Partitioning:
        """An existing table's. Raises TableError if another was requested."""
        table = open_table(self.table)
        if table.schema() is None:
            return self.partitioning
        found = partitioning_of(table.partition_columns())
        if self.partitioning.columns and self.partitioning != found:
            raise TableError(
                f"{self.table} is partitioned by {', '.join(found.columns) or 'nothing'}; a table"
                " keeps the partitions that it was made with: leave out --partition-by, or write"
                " to a new table"
            )
        return found

    def _fields(self, table: Table) -> StructType:
        fixed = self.rows.fixed_fields()
        if fixed is not None:
            return fixed
        if self.schema is not None:
            return parse_schema(self.schema)
        known = table.schema()
        if known is not None:
            own = table.partition_columns()
            names = self.rows.value_names(known.fieldNames(), own)
            return StructType([known[name] for name in names])
        return self._sample()

    def _sample(self) -> StructType:
        options = parse_source_options(self.source_options(), Use.STREAM)
        fields = complete(infer_fields(_first_values(options, self.topic)))
        if not len(fields):
            raise TableError(
                f"topic {self.topic} has no records that are objects in JSON to take a schema"
                " from; give one with --schema, or another --format"
            )
        return fields


def parse_schema(text: str) -> StructType:
    """DDL, Spark's JSON, or the path of a file with either."""
    path = Path(text)
    if len(text) < 1000 and "\n" not in text and path.suffix and path.is_file():
        text = path.read_text()
    try:
        is_json = text.lstrip().startswith("{")
        found = StructType.fromJson(json.loads(text)) if is_json else StructType.fromDDL(text)
    except (PySparkException, ValueError, LookupError, TypeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise TableError(f"{text!r:.200} is not a schema: {reason}") from None
    if not isinstance(found, StructType):
        raise TableError(f"{text!r:.200} is not a schema like 'item string, price int'")
    return found


def _partitions(options: SourceOptions, topic: str) -> list[str]:
    with options.cluster.connect() as cluster:
        return [str(partition) for partition in _find(cluster, topic).leaders]


def _find(cluster: Cluster, name: str) -> Topic:
    found = cluster.topics([name])
    if name not in found:
        raise TableError(f"there is no topic {name}; `ottla topics list` shows the topics")
    return found[name]


def _first_values(options: SourceOptions, topic: str) -> list[Any]:
    with options.cluster.connect() as cluster:
        found = _find(cluster, topic)
        topic_partitions = [TopicPartition(topic, partition) for partition in found.leaders]
        starts = first_offsets(cluster, topic_partitions, options.isolation)
        ends = last_offsets(cluster, topic_partitions, options.isolation)
    share = max(1, SAMPLE_RECORDS // len(topic_partitions))
    topic_id = None if found.id is None else str(found.id)
    columns = StructType([COLUMNS["value"]])
    values: list[Any] = []
    for topic_partition, start in starts.items():
        end = min(ends[topic_partition], start + share)
        if start < end:
            wanted = OffsetRange(topic, topic_partition.partition, start, end, topic_id)
            for batch in read_range(options, columns, wanted):
                values += batch.column("value").to_pylist()
    return values
