"""Writes a batch of a topic into a table: what `ottla table sync` does for each micro-batch.

1. the batch's ranges are compared with the table's end; nothing is done if it has them
2. with new fields enabled, tasks look for unknown fields, which are added to the table
3. tasks read the ranges and write files
4. one commit, which names the offsets it contains
5. now and then the table's files are compacted, or full maintenance runs
"""

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.types import BooleanType, StructField, StructType

from pyspark_ottla.arrow_schemas import to_arrow_schema
from pyspark_ottla.data_loss import logger
from pyspark_ottla.offset_ranges import OffsetRange
from pyspark_ottla.range_reader import read_range
from pyspark_ottla.source_options import Use, parse_source_options
from pyspark_ottla.tables import committing
from pyspark_ottla.tables.batch import Batch, Ends, Offsets
from pyspark_ottla.tables.columns import new_columns, prepare_table
from pyspark_ottla.tables.data_files import DataFile, TaskFiles
from pyspark_ottla.tables.json_inference import complete, infer_fields, merge_fields
from pyspark_ottla.tables.partitioning import Partitioning
from pyspark_ottla.tables.sync_plan import SyncPlan
from pyspark_ottla.tables.table import Claim, Merge, Table, TableChanged, Version, open_table
from pyspark_ottla.tables.topic_ranges import ranges_of
from pyspark_ottla.tables.topic_rows import DELETED, KEY, OFFSET, RowBuilder, TopicRows

COMPACTED_BYTES = 128 * 1024 * 1024

_MESSAGE = "message string"
_MESSAGE_SCHEMA = pa.schema([("message", pa.string())])


@dataclass(frozen=True)
class TopicSync:
    """Passed to Spark as `foreachBatch(sync.write)`, over a stream of `ottla_ranges`.

    A missing table is created just before the first commit, so that a failed batch leaves none.
    """

    plan: SyncPlan
    columns: StructType  # For a table that does not exist yet.
    partitioning: Partitioning  # The table's.

    def write(self, frame: Any, batch_id: int) -> None:  # noqa: ARG002
        """Batches are numbered by the table: Spark's numbers restart at 0 with a new checkpoint."""
        table = open_table(self.plan.table)
        offsets = offsets_of(ranges_of(frame.collect()))
        claim = self._claim(table)
        columns = _columns_of(table, self.columns)
        if self.plan.new_fields and not self._has(claim, offsets):
            columns = self._add_new_fields(table, columns, frame)
            claim = self._claim(table)
        if self._has(claim, offsets):
            committing.clean_up(table, _last(claim))
        else:
            self._write(table, claim, columns, offsets, frame)
        if self.plan.maintenance is not None:
            self.plan.maintenance.run_if_due(table)

    def _claim(self, table: Table) -> Claim | None:
        """None if there is no table."""
        return None if table.schema() is None else table.claim(self.plan.sink_id)

    def _has(self, claim: Claim | None, offsets: Offsets) -> bool:
        """Also true for a batch without ranges, which Spark may produce."""
        return not offsets or committing.is_contained(
            _last(claim), offsets, allow_gaps=not self.plan.fail_on_data_loss
        )

    def _add_new_fields(self, table: Table, columns: StructType, frame: Any) -> StructType:
        """Returns the resulting columns; changes only an existing table."""
        task = _FindFields(self.plan.source_options(), self.plan.rows, tuple(columns.fieldNames()))
        found = StructType()
        for row in frame.mapInArrow(task, _MESSAGE).collect():
            found = merge_fields(found, StructType.fromJson(json.loads(row.message)))
        if table.schema() is not None:
            return prepare_table(table, complete(found), add_columns=True)
        return StructType([*columns, *new_columns(columns, complete(found))])

    def _next_batch(self, claim: Claim | None, offsets: Offsets) -> Batch:
        last = _last(claim)
        before = None if last is None else last.batch
        number = 0 if before is None else before.batch_id + 1
        ends: Ends = {} if before is None else before.ends
        return Batch(
            self.plan.sink_id, number, offsets=offsets, ends=committing.extend(ends, offsets)
        )

    def _write(
        self, table: Table, claim: Claim | None, columns: StructType, offsets: Offsets, frame: Any
    ) -> None:
        batch = self._next_batch(claim, offsets)
        schema = self._schema(columns)
        prefix = f"{committing.CHANGES}/" if self.plan.rows.is_changes else table.data_prefix
        directory = f"{prefix}{batch.directory}"
        files = TaskFiles(
            table.location, directory, schema, uuid.uuid4().hex, self.partitioning.columns
        )
        task = _WriteRanges(self.plan.source_options(), self.plan.rows, files)
        messages = [json.loads(row.message) for row in frame.mapInArrow(task, _MESSAGE).collect()]
        batch = replace(batch, bad_rows=sum(message["bad"] for message in messages))
        written = [DataFile(**file) for message in messages for file in message["files"]]
        if claim is None:
            claim = committing.create_table(
                table, columns, self.plan.sink_id, self.partitioning.columns
            )
        if self.plan.rows.is_changes:
            merge = Merge((KEY,), DELETED)
            committing.merge_files(table, claim, batch, written, schema, merge=merge, order=OFFSET)
        else:
            committing.append_files(table, claim, batch, written)
        if self.plan.compact_every and (batch.batch_id + 1) % self.plan.compact_every == 0:
            _compact(table)

    def _schema(self, columns: StructType) -> pa.Schema:
        if self.plan.rows.is_changes:
            columns = StructType([*columns, StructField(DELETED, BooleanType())])
        return to_arrow_schema(columns)


@dataclass(frozen=True)
class _RangeTask:
    """A task that reads the records of the ranges it gets, and returns a message about them."""

    source: Mapping[str, str]
    rows: TopicRows

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        options = parse_source_options(self.source, Use.STREAM)
        columns = self.rows.source_columns()
        records = (
            chunk
            for batch in batches
            for wanted in ranges_of([row.values() for row in batch.to_pylist()])
            for chunk in read_range(options, columns, wanted)
        )
        yield pa.RecordBatch.from_pylist([{"message": self.run(records)}], _MESSAGE_SCHEMA)

    def run(self, records: Iterator[pa.RecordBatch]) -> str:
        raise NotImplementedError


@dataclass(frozen=True)
class _WriteRanges(_RangeTask):
    files: TaskFiles

    def run(self, records: Iterator[pa.RecordBatch]) -> str:
        partitioning = Partitioning(self.files.partition_by)
        builder = RowBuilder(self.rows, self.files.schema, partitioning)
        files = [asdict(file) for file in self.files.write_in_task(builder.build(records))]
        return json.dumps({"files": files, "bad": builder.bad_rows})


@dataclass(frozen=True)
class _FindFields(_RangeTask):
    known: tuple[str, ...]

    def run(self, records: Iterator[pa.RecordBatch]) -> str:
        values = (value for batch in records for value in batch.column("value").to_pylist())
        return infer_fields(values, self.known).json()


def _last(claim: Claim | None) -> Version | None:
    return None if claim is None else claim.last


def _columns_of(table: Table, otherwise: StructType) -> StructType:
    found = table.schema()
    return otherwise if found is None else found


def _compact(table: Table) -> None:
    """If other writers interfere, compaction can wait until next time."""
    try:
        table.compact(COMPACTED_BYTES)
    except TableChanged as error:
        logger.warning("%s is not compacted: %s", table.address, error)


def offsets_of(ranges: Sequence[OffsetRange]) -> Offsets:
    """Joins consecutive parts of a partition."""
    offsets: dict[str, dict[str, tuple[int, int]]] = {}
    for wanted in ranges:
        partitions = offsets.setdefault(wanted.topic, {})
        start, end = partitions.get(str(wanted.partition), (wanted.start, wanted.end))
        partitions[str(wanted.partition)] = min(start, wanted.start), max(end, wanted.end)
    return offsets
