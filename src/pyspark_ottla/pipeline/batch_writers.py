"""Sinks that receive whole batches: tables, the console, and topics in the mode `update`.

Spark supports that mode for no Python sink, but `foreachBatch` does. These writers can be pickled,
as Spark Connect requires, and then run where the server is.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from pyspark_ottla.pipeline.model import Sink
from pyspark_ottla.tables.writer import TableWriter

_ROWS_SHOWN = 20
_CHARACTERS_SHOWN = 40


@dataclass(frozen=True)
class TopicWriter:
    """Writes a batch once per number, like the stream writer."""

    options: Mapping[str, str]  # For the data sink.

    def write(self, frame: DataFrame, batch_id: int) -> None:
        writer = frame.write.format("ottla").options(**self.options)
        if "sinkId" in self.options:
            writer = writer.option("delivery", "exactly_once").option("batchId", str(batch_id))
        writer.mode("append").save()


@dataclass(frozen=True)
class ConsoleWriter:
    name: str
    show: Callable[[str], Any]

    def write(self, frame: DataFrame, batch_id: int) -> None:
        rows = frame._show_string(_ROWS_SHOWN, _CHARACTERS_SHOWN)  # type: ignore[operator]
        self.show(f"{self.name}, batch {batch_id}:\n{rows}")


def table_writer(sink: Sink, sink_id: str) -> TableWriter:
    """Raises TableError if it is impossible."""
    return TableWriter(
        f"{sink.kind}:{sink.target}",
        sink_id=sink_id,
        key=tuple(map(str, sink.key)),
        order=sink.order_by or None,
        deleted=sink.deleted or "_deleted",
        add_columns=sink.options.get("add-columns", "true") == "true",
    )
