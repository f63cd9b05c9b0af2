"""What Spark calls to write a batch or a stream with the format `ottla_table`.

`write` runs in tasks; `commit` and `abort` run on the driver, in objects rebuilt from the options.
Spark also calls `abort` after a failed `commit`, and both again for a batch that a restarted query
repeats: so `abort` does nothing, and the batch's next commit removes the leftovers.
"""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pyspark_ottla.options import OptionError
from pyspark_ottla.spark_api import StreamArrowWriter
from pyspark_ottla.tables.data_files import DataFile, TaskFiles
from pyspark_ottla.tables.source_options import TableOptions
from pyspark_ottla.tables.writer import TableWriter
from pyspark_ottla.task_context import current_batch
from pyspark_ottla.workarounds.zip_directories import watch_zips


@dataclass
class TaskMessage(WriterCommitMessage):
    query_id: str
    files: Sequence[DataFile]


def _table_writer(options: TableOptions) -> TableWriter:
    if options.sink_id is None:
        raise OptionError(
            "option sinkId is missing: a name for the writer, the same after restarts"
        )
    return TableWriter(
        options.table,
        options.sink_id,
        options.key,
        options.order,
        options.deleted,
        options.add_columns,
    )


class StreamTableWriter(StreamArrowWriter):
    def __init__(self, options: TableOptions, schema: StructType) -> None:
        self._writer = _table_writer(options)
        self._rows = self._writer.prepare(schema)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        batch = current_batch()
        files = _write(self._rows.files_of(batch.id, batch.run_id), iterator)
        return TaskMessage(batch.query_id, files)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        tasks = _of_tasks(messages)
        if tasks:  # Otherwise there are no rows, now or in a repeat.
            files = [file for task in tasks for file in task.files]
            self._writer.commit(self._rows, batchId, tasks[0].query_id, files)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        pass


class BatchTableWriter(DataSourceArrowWriter):
    """Spark pickles this object, so tasks share one run id."""

    def __init__(self, options: TableOptions, schema: StructType) -> None:
        assert options.batch_id is not None, "the options were checked"
        self._writer = _table_writer(options)
        self._rows = self._writer.prepare(schema)
        self._batch_id = options.batch_id
        self._run_id = uuid.uuid4().hex

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        files = _write(self._rows.files_of(self._batch_id, self._run_id), iterator)
        return TaskMessage("", files)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        files = [file for task in _of_tasks(messages) for file in task.files]
        self._writer.commit(self._rows, self._batch_id, "", files)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        pass


def _write(files: TaskFiles, iterator: Iterator[Any]) -> list[DataFile]:
    watch_zips()
    return files.write_in_task(iterator)


def _of_tasks(messages: Sequence[WriterCommitMessage | None]) -> list[TaskMessage]:
    return [message for message in messages if isinstance(message, TaskMessage)]
