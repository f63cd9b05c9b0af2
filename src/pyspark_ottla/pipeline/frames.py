"""Sources and steps as Spark frames, each a temporary view of the same name.

A source whose values are objects has their fields as columns, and the rest of the record as `_key`,
`_topic`, `_partition`, `_offset`, `_timestamp` and `_headers`. One of text or bytes has the columns
of the data source: `key`, `value`, `topic` and so on.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from pyspark_ottla.pipeline.expectations import (
    BAD_VALUE,
    RAW_VALUE,
    VALUE_ERROR,
    Judged,
    judge_rows,
)
from pyspark_ottla.pipeline.functions import FunctionNotFound, find_function
from pyspark_ottla.pipeline.model import Otherwise, Pipeline, Source, Step
from pyspark_ottla.pipeline.problems import Problem
from pyspark_ottla.pipeline.spark_errors import describe_error

RECORD_COLUMNS = ("key", "topic", "partition", "offset", "timestamp", "headers")


class FrameError(Exception):
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass(frozen=True)
class Frames:
    good: dict[str, DataFrame]  # By source or step.
    bad: dict[str, DataFrame]  # Dead-letter records, of those that quarantine rows.


OpenSource = Callable[[Source], DataFrame]  # Returns a frame with the data source's columns.


def build_frames(
    spark: SparkSession,
    pipeline: Pipeline,
    problems: list[Problem] | None = None,
    open_source: OpenSource | None = None,
) -> Frames:
    """Raises FrameError for the first invalid one; with `problems`, notes it there instead.

    Sources are streams of their topics unless `open_source` supplies other frames.
    """
    frames = Frames({}, {})
    for dataset in pipeline.datasets:
        try:
            _add(spark, pipeline, dataset, frames, open_source)
        except FrameError as error:
            if problems is None:
                raise
            problems.append(error.problem)
            return frames  # Later errors would only repeat this one.
    return frames


def _add(
    spark: SparkSession,
    pipeline: Pipeline,
    dataset: Source | Step,
    frames: Frames,
    open_source: OpenSource | None,
) -> None:
    if isinstance(dataset, Source):
        frame = _source_frame(dataset, open_source or (lambda each: _stream(spark, pipeline, each)))
    else:
        frame = _step_frame(spark, pipeline, dataset, frames)
    judged = _judged(frame, pipeline, dataset)
    good = judged.good
    watermark = dataset.watermark
    if watermark is not None:
        good = _checked(
            lambda: judged.good.withWatermark(watermark.column, watermark.delay),
            watermark.line,
            f"watermark of {dataset.name}",
        )
    good.createOrReplaceTempView(dataset.name)
    frames.good[dataset.name] = good
    if judged.bad is not None:
        frames.bad[dataset.name] = judged.bad


def source_options(pipeline: Pipeline, source: Source) -> dict[str, str]:
    """Options for the data source `ottla`."""
    options = {
        "kafka.bootstrap.servers": pipeline.bootstrap_servers,
        "kafka.isolation.level": "read_committed",
        "startingOffsets": source.start,
        "valueFormat": source.format,
    }
    if source.topics:
        options["subscribe"] = ",".join(source.topics)
    if source.pattern:
        options["subscribePattern"] = str(source.pattern)
    if source.schema:
        options["valueSchema"] = str(source.schema)
    if source.records_per_batch_max is not None:
        options["maxOffsetsPerTrigger"] = str(source.records_per_batch_max)
    if source.has_headers:
        options["includeHeaders"] = "true"
    if source.format != "binary":
        options["valueMode"] = "failfast" if source.bad_values is Otherwise.FAIL else "permissive"
        if source.bad_values is not Otherwise.FAIL or source.quarantines:
            options["includeRawValue"] = "true"
            options["includeValueError"] = "true"
    return options | dict(source.options)


def _stream(spark: SparkSession, pipeline: Pipeline, source: Source) -> DataFrame:
    reader = spark.readStream.format("ottla")
    for name, value in source_options(pipeline, source).items():
        reader = reader.option(name, value)
    return reader.load()


def _source_frame(source: Source, open_source: OpenSource) -> DataFrame:
    try:
        frame = open_source(source)
        value_type = frame.schema["value"].dataType
    except PySparkException as error:
        line = source.schema.line if source.schema else source.line
        raise _failed(error, line, f"source {source.name}") from error
    columns = [name for name in RECORD_COLUMNS if name in frame.columns]
    hidden: list[Any] = []
    if "rawValue" in frame.columns:
        hidden = [
            F.col("rawValue").alias(RAW_VALUE),
            (F.col("value").isNull() & F.col("rawValue").isNotNull()).alias(BAD_VALUE),
            F.col("valueError").alias(VALUE_ERROR),
        ]
    if not isinstance(value_type, StructType):
        return frame.select("value", *columns, *hidden)
    taken = set(value_type.fieldNames()) & {f"_{name}" for name in columns}
    if taken:
        problem = f"source {source.name}: the fields {', '.join(sorted(taken))} cannot be columns"
        raise FrameError(Problem(source.schema.line, f"{problem}; records have such ones already"))
    record = [F.col(name).alias(f"_{name}") for name in columns if name != "key"]
    key = F.col("key").cast("string").alias("_key")
    return frame.select("value.*", key, *record, *hidden)


def _step_frame(spark: SparkSession, pipeline: Pipeline, step: Step, frames: Frames) -> DataFrame:
    if step.sql:
        return _checked(  # type: ignore[no-any-return]
            lambda: spark.sql(step.sql), step.sql.line, f"step {step.name}"
        )
    title = f"step {step.name}"
    try:
        function = find_function(step.function, pipeline.path.parent)
    except FunctionNotFound as error:
        raise FrameError(Problem(step.function.line, f"{title}: {error}")) from error
    inputs = [frames.good[name] for name in step.inputs]
    frame = _checked(lambda: function(*inputs, **step.arguments), step.function.line, title)
    if not hasattr(frame, "writeStream"):
        problem = f"{title}: {step.function} returned {type(frame).__name__}, not a DataFrame"
        raise FrameError(Problem(step.function.line, problem))
    return frame  # type: ignore[no-any-return]


def _judged(frame: DataFrame, pipeline: Pipeline, dataset: Source | Step) -> Judged:
    for expectation in dataset.expectations:
        check = expectation.check
        title = f"expect {expectation.name} of {dataset.name}"
        _checked(lambda check=check: frame.where(check), check.line, title)
    return judge_rows(frame, pipeline.name, dataset)


def _checked(build: Any, line: int, title: str) -> Any:
    """Forces the analysis: Spark Connect analyses only when asked for the schema."""
    try:
        frame = build()
        _ = getattr(frame, "schema", None)
    except FrameError:
        raise
    except PySparkException as error:
        raise _failed(error, line, title) from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        problem = Problem(line, f"{title}: {type(error).__name__}: {error}")
        raise FrameError(problem) from error
    return frame


def _failed(error: Exception, line: int, title: str) -> FrameError:
    described = describe_error(error)
    line += (described.sql_line or 1) - 1
    return FrameError(Problem(line, f"{title}: {described.message}"))
