"""Rows into Parquet files: the tasks' part.

A file is complete once its name is reported to the driver; an unreported one does not count, and is
removed after the commit. Names belong to one attempt, so no two attempts write the same file.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as types

from pyspark_ottla.tables import locations
from pyspark_ottla.task_context import current_task

COMPRESSION = "zstd"
FILE_BYTES = 256 * 1024 * 1024  # Approximate; a file ends with the first row group that passes it.
COMPACTED = "compacted"  # Directory of merged files.
ROW_GROUP_BYTES = 32 * 1024 * 1024  # In memory.


@dataclass(frozen=True)
class DataFile:
    path: str  # Relative to the table's location.
    size: int
    rows: int
    statistics: str  # In JSON, as in Delta's log.
    partition: Mapping[str, str] = field(default_factory=dict)  # For a partitioned table.


@dataclass(frozen=True)
class TaskFiles:
    """What a task must know to write its files. Can be pickled."""

    location: str  # The table's.
    directory: str  # Relative to the location.
    schema: pa.Schema
    run_id: str  # Of this attempt at the batch: Spark counts attempts from zero after a restart.
    partition_by: tuple[str, ...] = ()  # Columns; each file has the rows of one partition.

    def write(
        self, batches: Iterable[pa.RecordBatch], partition: int, attempt: int
    ) -> list[DataFile]:
        """`partition` and `attempt` are the task's."""
        name = f"{self.directory}/{self.run_id}-{partition}-{attempt}"
        if not self.partition_by:
            return self._write(batches, name)
        return self._write_partitions(batches, name)

    def write_in_task(self, batches: Iterable[pa.RecordBatch]) -> list[DataFile]:
        task = current_task()
        return self.write(batches, task.partitionId(), task.taskAttemptId())

    def _write(self, batches: Iterable[pa.RecordBatch], name: str) -> list[DataFile]:
        writer = DataFileWriter(self.location, name, self.schema)
        for batch in batches:
            writer.write(batch)
        return writer.close()

    def _write_partitions(self, batches: Iterable[pa.RecordBatch], name: str) -> list[DataFile]:
        writers: dict[tuple[str, ...], DataFileWriter] = {}
        for batch in batches:
            for values, rows in split(batch, self.partition_by):
                if values not in writers:
                    each = f"{name}-{len(writers)}"
                    writers[values] = DataFileWriter(self.location, each, self.schema)
                writers[values].write(rows)
            if sum(writer.waiting_bytes for writer in writers.values()) >= 2 * ROW_GROUP_BYTES:
                max(writers.values(), key=lambda writer: writer.waiting_bytes).flush()
        return [
            replace(file, partition=dict(zip(self.partition_by, values, strict=True)))
            for values, writer in writers.items()
            for file in writer.close()
        ]


class DataFileWriter:
    """Writes as many files as the rows need, and none without rows; `close` returns them."""

    def __init__(self, location: str, name: str, schema: pa.Schema) -> None:
        """`name` is the files' path relative to the location, without number and extension."""
        self._location = location
        self._name = name
        self._schema = schema
        self._files: list[DataFile] = []
        self._open: _OpenFile | None = None
        self._waiting: list[Any] = []
        self.waiting_bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Columns are matched by name; columns missing from the batch are null."""
        if not batch.num_rows:
            return
        self._waiting.append(fit(batch, self._schema))
        self.waiting_bytes += batch.nbytes
        if self.waiting_bytes >= ROW_GROUP_BYTES:
            self.flush()

    def close(self) -> list[DataFile]:
        self.flush()
        self._end_file()
        return self._files

    def flush(self) -> None:
        """Write the buffered rows as a row group."""
        if not self._waiting:
            return
        if self._open is None:
            path = f"{self._name}-{len(self._files)}.parquet"
            self._open = _OpenFile(self._location, path, self._schema)
        self._open.write(pa.Table.from_batches(self._waiting, self._schema))
        self._waiting, self.waiting_bytes = [], 0
        if self._open.size >= FILE_BYTES:
            self._end_file()

    def _end_file(self) -> None:
        if self._open is not None:
            self._files.append(self._open.close())
            self._open = None


class _OpenFile:
    def __init__(self, location: str, path: str, schema: pa.Schema) -> None:
        filesystem, whole = locations.open_location(locations.join(location, path))
        filesystem.create_dir(whole.rpartition("/")[0], recursive=True)
        self._path = path
        self._stream = filesystem.open_output_stream(whole)
        self._writer = pq.ParquetWriter(self._stream, schema, compression=COMPRESSION)

    @property
    def size(self) -> int:
        return int(self._stream.tell())

    def write(self, table: pa.Table) -> None:
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))

    def close(self) -> DataFile:
        self._writer.close()
        metadata = self._writer.writer.metadata
        size = self.size
        self._stream.close()
        return DataFile(self._path, size, metadata.num_rows, statistics_of(metadata))


def split(
    batch: pa.RecordBatch, names: Sequence[str]
) -> Iterator[tuple[tuple[str, ...], pa.RecordBatch]]:
    """The rows of each partition, with its values as text."""
    codes = np.zeros(batch.num_rows, np.int64)
    for name in names:
        encoded = batch.column(name).dictionary_encode()
        codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy()
    _, firsts, numbers = np.unique(codes, return_index=True, return_inverse=True)
    for number, first in enumerate(firsts.tolist()):
        values = tuple(str(batch.column(name)[first].as_py()) for name in names)
        yield values, batch.take(pa.array(np.flatnonzero(numbers == number)))


def fit(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The schema's columns, in its order and types. Raises ArrowInvalid if data would be lost."""
    columns = [
        batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def statistics_of(metadata: Any) -> str:
    """For integers and times; readers use them to skip files."""
    bounds: dict[str, tuple[Any, Any]] = {}
    unknown: set[str] = set()
    for name, statistics in _column_statistics(metadata):
        if statistics is None or (not statistics.has_min_max and statistics.num_values):
            unknown.add(name)
        elif statistics.num_values:
            low, high = statistics.min, statistics.max
            if name in bounds:
                low, high = min(low, bounds[name][0]), max(high, bounds[name][1])
            bounds[name] = (low, high)
    known = {name: pair for name, pair in bounds.items() if name not in unknown}
    return json.dumps(
        {
            "numRecords": metadata.num_rows,
            "minValues": {name: _bound(low) for name, (low, _) in known.items()},
            "maxValues": {name: _bound(high, _REST) for name, (_, high) in known.items()},
            "nullCount": {},
        }
    )


def _column_statistics(metadata: Any) -> Iterator[tuple[str, Any]]:
    schema = metadata.schema.to_arrow_schema()
    names = {
        field.name
        for field in schema
        if types.is_integer(field.type) or (types.is_timestamp(field.type) and field.type.tz)
    }
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for index in range(row_group.num_columns):
            column = row_group.column(index)
            if column.path_in_schema in names:
                yield column.path_in_schema, column.statistics


def _bound(value: Any, rest: timedelta = timedelta()) -> Any:
    """Delta's log has times in milliseconds; `rest` makes one an upper bound."""
    if isinstance(value, int):
        return value
    return (value + rest).isoformat(timespec="milliseconds").replace("+00:00", "Z")


_REST = timedelta(microseconds=999)


def read_files(location: str, files: Sequence[DataFile], schema: pa.Schema) -> pa.Table:
    parts = [read_parquet(locations.join(location, file.path)) for file in files]
    return pa.concat_tables([part.cast(schema) for part in parts] or [schema.empty_table()])


def read_parquet(location: str) -> pa.Table:
    filesystem, path = locations.open_location(location)
    return pq.read_table(path, filesystem=filesystem, partitioning=None)
