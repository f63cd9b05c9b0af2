"""Rows of any query into a table, exactly once: `TableWriter`."""

import random
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.types import BooleanType, StructField, StructType

from pyspark_ottla.arrow_schemas import to_arrow_schema
from pyspark_ottla.spark_api import is_connect
from pyspark_ottla.tables import committing
from pyspark_ottla.tables.address import TableError, parse_address
from pyspark_ottla.tables.batch import Batch, validate_sink_id
from pyspark_ottla.tables.columns import prepare_table
from pyspark_ottla.tables.data_files import DataFile, TaskFiles
from pyspark_ottla.tables.table import Merge, TableChanged, open_table, validate_tasks

# Pauses before retries of a commit, while other writers change the table.
_PAUSES_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 2.0, 2.0)
_FILES = "path string, size bigint, rows bigint, statistics string"
_FILES_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("size", pa.int64()),
        ("rows", pa.int64()),
        ("statistics", pa.string()),
    ]
)


@dataclass(frozen=True)
class TableWriter:
    """Writes batches of rows into a table, each once, however often it is passed.

            writer = TableWriter("delta:/lake/orders", sink_id="orders")
            frame.writeStream.foreachBatch(writer.write).option("checkpointLocation", ...).start()

    Tasks write the files, and the driver makes one commit per batch, so rows do not pass through
    the driver. The first commit creates the table. `write` may be called outside a stream too, with
    numbers that stay the same for a repeated write and increase for the next one.

    With `key` the table is a current state: a row replaces the row with the same key, and one whose
    column `deleted` (boolean; not stored in the table) is true deletes it. Among a batch's rows
    with the same key the last by the column `order` counts. A batch's changes pass through the
    driver, so they must fit into its memory.

    It can be pickled, as Spark Connect requires, and then runs where the server is.
    """

    table: str  # delta:PATH, iceberg:CATALOG.NAMESPACE.TABLE
    sink_id: str  # Stable over restarts; belongs to one checkpoint, and one table.
    key: tuple[str, ...] = ()
    order: str | None = None  # Required if a batch can have a key twice.
    deleted: str = "_deleted"
    add_columns: bool = True  # Whether to add columns that the table lacks, or refuse them.
    keeps_newer: bool = False  # Whether a table row stays if its `order` is later.

    def __post_init__(self) -> None:
        """Raises TableError for invalid settings before a query is started."""
        object.__setattr__(self, "table", str(parse_address(self.table)))  # Resolved here.
        validate_sink_id(self.sink_id)
        validate_tasks(self.table)

    def write(self, frame: Any, batch_id: int) -> None:
        """Writes nothing if the table has the batch. Raises TableError for rows that do not fit."""
        rows = self.prepare(frame.schema)
        query_id = _query_id(frame)
        if not self._finish(Batch(self.sink_id, batch_id, query_id)):
            task = _Task(rows.files_of(batch_id, uuid.uuid4().hex))
            files = [DataFile(*row) for row in frame.mapInArrow(task, _FILES).collect()]
            self.commit(rows, batch_id, query_id, files)

    def prepare(self, frame: StructType) -> "PreparedRows":
        """Add the columns that the rows need to the table."""
        table = open_table(self.table)
        columns = prepare_table(table, self._table_columns(frame), add_columns=self.add_columns)
        written = columns
        if self.key:
            written = StructType([*columns, StructField(self.deleted, BooleanType())])
        prefix = f"{committing.CHANGES}/" if self.key else table.data_prefix
        arrow = to_arrow_schema(written)
        return PreparedRows(table.location, f"{prefix}{self.sink_id}", columns, arrow)

    def commit(
        self, rows: "PreparedRows", batch_id: int, query_id: str, files: Sequence[DataFile]
    ) -> None:
        """The files become the batch, unless the table has it; then they are removed.

        Another writer may change the table between the check and the commit.
        """
        batch = Batch(self.sink_id, batch_id, query_id)
        table = open_table(self.table)
        if table.schema() is None:
            committing.create_table(table, rows.columns, self.sink_id)
        for pause_s in _PAUSES_S:
            try:
                self._commit(rows, batch, files)
                return
            except TableChanged:
                time.sleep(random.uniform(0, pause_s))
        self._commit(rows, batch, files)

    def _commit(self, rows: "PreparedRows", batch: Batch, files: Sequence[DataFile]) -> None:
        table = open_table(self.table)
        claim = table.claim(self.sink_id)
        if committing.is_committed(claim.last, batch):
            committing.clean_up(table, claim.last)
        elif self.key:
            newer_by = self.order if self.keeps_newer else None
            merge = Merge(self.key, self.deleted, newer_by)
            committing.merge_files(
                table, claim, batch, files, rows.schema, merge=merge, order=self.order
            )
        else:
            committing.append_files(table, claim, batch, files)

    def _finish(self, batch: Batch) -> bool:
        """Whether the table has the batch; if so, removes the batch's leftovers."""
        table = open_table(self.table)
        if table.schema() is None:
            return False
        last = table.claim(self.sink_id).last
        is_committed = committing.is_committed(last, batch)
        if is_committed:
            committing.clean_up(table, last)
        return is_committed

    def _table_columns(self, frame: StructType) -> StructType:
        missing = {*self.key, *filter(None, [self.order])} - set(frame.fieldNames())
        if missing:
            raise TableError(f"the rows have no column {', '.join(sorted(missing))}")
        if not self.key:
            return frame
        if self.deleted in frame.fieldNames() and frame[self.deleted].dataType != BooleanType():
            raise TableError(f"column {self.deleted} must be boolean")
        return StructType([column for column in frame if column.name != self.deleted])


@dataclass(frozen=True)
class PreparedRows:
    """Where tasks write a batch's rows, and in what form. Can be pickled."""

    location: str
    directory: str  # The sink's, relative to the location.
    columns: StructType  # The table's.
    schema: pa.Schema

    def files_of(self, batch_id: int, run_id: str) -> TaskFiles:
        return TaskFiles(self.location, f"{self.directory}/{batch_id}", self.schema, run_id)


@dataclass(frozen=True)
class _Task:
    files: TaskFiles

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        written = self.files.write_in_task(batches)
        yield pa.RecordBatch.from_pylist([asdict(file) for file in written], _FILES_SCHEMA)


def _query_id(frame: Any) -> str:
    """The batch's stream. A Connect session does not know it."""
    if is_connect(frame):
        return ""
    return frame.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId") or ""
