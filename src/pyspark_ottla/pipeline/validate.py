"""Finds everything that can be wrong with a pipeline before anything starts.

The file itself is checked when it is loaded; here come the topics, and with Spark the schemas, the
SQL, the functions, and each sink's input.
"""

from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from pyspark_ottla.pipeline.batch_writers import table_writer
from pyspark_ottla.pipeline.frames import Frames, build_frames
from pyspark_ottla.pipeline.model import TABLES, Pipeline, Sink, SinkKind
from pyspark_ottla.pipeline.problems import PipelineError, Problem
from pyspark_ottla.pipeline.session import apply_settings
from pyspark_ottla.pipeline.spark_errors import describe_error
from pyspark_ottla.pipeline.topics import find_problems
from pyspark_ottla.pipeline.writers import as_records, sink_id
from pyspark_ottla.sink.columns import ColumnError, validate_columns
from pyspark_ottla.spark_api import is_connect
from pyspark_ottla.tables.address import TableError
from pyspark_ottla.tables.columns import new_columns, validate_types
from pyspark_ottla.tables.table import open_table


def validate_topics(pipeline: Pipeline) -> None:
    """Raises PipelineError; needs no Spark."""
    problems = find_problems(pipeline)
    if problems:
        raise PipelineError(pipeline.path, problems)


def validate_pipeline(spark: SparkSession, pipeline: Pipeline) -> Frames:
    """Returns the pipeline's frames. Raises PipelineError if some cannot be built."""
    validate_topics(pipeline)
    apply_settings(spark, pipeline.spark_settings)
    problems: list[Problem] = []
    frames = build_frames(spark, pipeline, problems)
    for sink in pipeline.sinks.values():
        if sink.input in frames.good:
            problems += _sink_problems(spark, pipeline, sink, frames.good[sink.input])
    if problems:
        raise PipelineError(pipeline.path, problems)
    return frames


def _sink_problems(
    spark: SparkSession, pipeline: Pipeline, sink: Sink, frame: DataFrame
) -> list[Problem]:
    title = f"sink {sink.name}"
    if not frame.isStreaming:
        reason = f"{sink.input} reads no source, so there is nothing to wait for"
        return [Problem(sink.input.line, f"{title}: {reason}")]
    problems = []
    if sink.kind is SinkKind.CONSOLE and is_connect(spark):
        reason = "a Spark Connect server cannot print here; write to a topic, or use --master"
        problems.append(Problem(sink.line, f"{title}: {reason}"))
    for column in sink.partition_by:
        if column not in frame.columns:
            known = ", ".join(frame.columns)
            problems.append(
                Problem(column.line, f"{title}: there is no column {column}; there are {known}")
            )
    if sink.kind is SinkKind.TOPIC:
        problems += _topic_problems(sink, frame, title)
    if sink.kind in TABLES:
        problems += _table_problems(pipeline, sink, frame, title)
    return problems or _mode_problems(spark, sink, frame, title)


def _topic_problems(sink: Sink, frame: DataFrame, title: str) -> list[Problem]:
    try:
        schema = as_records(frame, sink).schema
        validate_columns(schema, has_topic_option=bool(sink.target))
    except PySparkException as error:
        line = sink.key[0].line if sink.key else sink.line
        return [Problem(line, f"{title}: {describe_error(error).message}")]
    except ColumnError as error:
        hint = "" if sink.format == "json" else " (format: json writes all columns)"
        return [Problem(sink.line, f"{title}: {error}{hint}")]
    return []


def _table_problems(pipeline: Pipeline, sink: Sink, frame: DataFrame, title: str) -> list[Problem]:
    for column in (*sink.key, *filter(None, [sink.order_by, sink.deleted])):
        if column not in frame.columns:
            known = ", ".join(frame.columns)
            reason = f"there is no column {column}; there are {known}"
            return [Problem(sink.line, f"{title}: {reason}")]
    try:
        writer = table_writer(sink, sink_id(pipeline, sink))
        rows = StructType([field for field in frame.schema if field.name != sink.deleted])
        validate_types(rows)
        before = open_table(writer.table).schema()
        if before is not None:
            new_columns(before, rows)
    except TableError as error:
        return [Problem(sink.target.line, f"{title}: {error}")]
    return []


def _mode_problems(spark: SparkSession, sink: Sink, frame: DataFrame, title: str) -> list[Problem]:
    """Whether Spark can run the steps before the sink in its mode, by Spark's internal check."""
    if is_connect(spark):  # Found when the query starts.
        return []
    jvm: Any = spark._jvm
    mode = getattr(jvm.org.apache.spark.sql.streaming.OutputMode, sink.mode.capitalize())()
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    try:
        plan = frame._jdf.queryExecution().analyzed()
        checker.checkForStreaming(plan, mode)
    except PySparkException as error:
        message = describe_error(error).message
        return [Problem(sink.line, f"{title}: mode {sink.mode}: {message}")]
    return []
