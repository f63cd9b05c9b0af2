"""One streaming query per sink, and one per dataset that quarantines rows.

Each has its own checkpoint under the pipeline's directory, and continues from there. Topics and
tables are written exactly once: pipeline and sink name form the id that identifies batches there.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyspark_ottla.pipeline.batch_writers import ConsoleWriter, TopicWriter, table_writer
from pyspark_ottla.pipeline.frames import Frames
from pyspark_ottla.pipeline.model import Pipeline, Sink, SinkKind
from pyspark_ottla.sink.options import SINK_ID_CHARACTERS_MAX

DEAD_LETTER = "dead-letter-"  # Prefix of the dataset's name in a query's name.
ROWS_OUT = "rows.out"  # Observed: rows passed to a sink.


class Query(NamedTuple):
    """A query ready to start."""

    name: str  # The sink's.
    line: int
    target: str  # For display.
    writer: Any  # A DataStreamWriter.


def build_queries(
    pipeline: Pipeline, frames: Frames, *, once: bool, show: Any = print
) -> Iterator[Query]:
    """`show` prints the input of console sinks."""
    for sink in pipeline.sinks.values():
        writer = _writer(pipeline, sink, _counted(frames.good[sink.input]), show)
        writer = writer.outputMode(sink.mode)
        yield _query(pipeline, sink.name, sink.line, writer, once=once, every=sink.trigger)
    for name, frame in frames.bad.items():
        query = f"{DEAD_LETTER}{name}"
        writer = _counted(frame).writeStream.format("ottla")
        writer = writer.options(**dead_letter_options(pipeline, query))
        yield _query(pipeline, query, 0, writer, once=once)


def _counted(frame: DataFrame) -> DataFrame:
    return frame.observe(ROWS_OUT, F.count(F.lit(1)).alias("rows"))


def _query(
    pipeline: Pipeline, name: str, line: int, writer: Any, *, once: bool, every: str = ""
) -> Query:
    writer = writer.queryName(f"{pipeline.name}.{name}")
    writer = writer.option("checkpointLocation", f"{pipeline.checkpoints}/{name}")
    if once:
        writer = writer.trigger(availableNow=True)
    elif every:
        writer = writer.trigger(processingTime=every)
    return Query(name, line, query_target(pipeline, name), writer)


def query_names(pipeline: Pipeline) -> list[str]:
    """Of the sinks, and of those that write refused rows."""
    refusing = [dataset.name for dataset in pipeline.datasets if dataset.quarantines]
    return [*pipeline.sinks, *(f"{DEAD_LETTER}{name}" for name in refusing)]


def query_target(pipeline: Pipeline, query: str) -> str:
    """For display, and to tell whether a query still writes to the same target."""
    sink = pipeline.sinks.get(query)
    if sink is None:
        return f"topic {pipeline.dead_letter_topic}"
    return "console" if sink.kind is SinkKind.CONSOLE else f"{sink.kind} {sink.target}"


def dead_letter_options(pipeline: Pipeline, query: str) -> dict[str, str]:
    """Options for the data sink `ottla`."""
    return {
        "kafka.bootstrap.servers": pipeline.bootstrap_servers,
        "topic": str(pipeline.dead_letter_topic),
        "sinkId": _id_of(pipeline, query),
    }


def _writer(pipeline: Pipeline, sink: Sink, frame: DataFrame, show: Any) -> Any:
    if sink.kind is SinkKind.PARQUET:
        writer = frame.writeStream.format("parquet").option("path", str(sink.target))
        writer = writer.options(**sink.options)
        return writer.partitionBy(*sink.partition_by) if sink.partition_by else writer
    if sink.kind is SinkKind.CONSOLE:
        return frame.writeStream.foreachBatch(ConsoleWriter(sink.name, show).write)
    if sink.kind is not SinkKind.TOPIC:
        return frame.writeStream.foreachBatch(table_writer(sink, sink_id(pipeline, sink)).write)
    records, options = as_records(frame, sink), topic_options(pipeline, sink)
    if sink.mode == "update":
        return records.writeStream.foreachBatch(TopicWriter(options).write)
    return records.writeStream.format("ottla").options(**options)


def as_records(frame: DataFrame, sink: Sink) -> DataFrame:
    """Rows as records of a topic: as they are, or each as a JSON object."""
    if sink.format == "record":
        return frame
    fields = [F.col(f"`{name}`") for name in frame.columns if not name.startswith("_")]
    value = F.to_json(F.struct(*fields), {"ignoreNullFields": "false"})
    columns: list[Column] = [value.alias("value")]
    if sink.key:
        columns.append(F.expr(sink.key[0]).cast("string").alias("key"))
    return frame.select(*columns)


def topic_options(pipeline: Pipeline, sink: Sink) -> dict[str, str]:
    """Options for the data sink `ottla`."""
    options = {"kafka.bootstrap.servers": pipeline.bootstrap_servers}
    if sink.target:
        options["topic"] = str(sink.target)
    given = {name.lower(): value for name, value in sink.options.items()}
    if given.get("delivery") != "at_least_once":
        options["sinkId"] = sink_id(pipeline, sink)
    return options | dict(sink.options)


def sink_id(pipeline: Pipeline, sink: Sink) -> str:
    return _id_of(pipeline, sink.name, sink.sink_id)


def _id_of(pipeline: Pipeline, query: str, given: str = "") -> str:
    """Changes after a reset: batches are then counted from 0 again."""
    generation = pipeline.generations.get(query, 0)
    suffix = f"-r{generation}" if generation else ""
    own = given or pipeline.sink_ids.get(query) or f"{pipeline.name}-{query}"
    return own[: SINK_ID_CHARACTERS_MAX - len(suffix)] + suffix
