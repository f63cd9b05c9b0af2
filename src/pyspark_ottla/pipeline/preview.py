"""Every step of a pipeline on the newest records of its topics; writes nothing."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pyspark_ottla.pipeline.expectations import HEADER_REASON
from pyspark_ottla.pipeline.frames import Frames, build_frames
from pyspark_ottla.pipeline.model import Pipeline, Source
from pyspark_ottla.pipeline.problems import PipelineError, Problem
from pyspark_ottla.pipeline.samples import read_newest
from pyspark_ottla.pipeline.session import apply_settings
from pyspark_ottla.pipeline.spark_errors import describe_error
from pyspark_ottla.pipeline.validate import validate_topics
from pyspark_ottla.value_formats import BadValue

_ROWS_MAX = 10_000  # Per step; a join can turn a few rows into very many.


class Preview(NamedTuple):
    name: str
    kind: str  # source or step.
    columns: list[str]
    rows: list[dict[str, Any]]  # The first of them.
    row_count: int
    refused: dict[str, int]  # Rows for the dead-letter topic, by reason.


def preview_pipeline(
    spark: SparkSession, pipeline: Pipeline, *, step: str = "", rows: int = 20, sample: int = 1000
) -> Iterator[Preview]:
    """Of one source or step, or of all. Raises PipelineError."""
    known = [dataset.name for dataset in pipeline.datasets]
    if step and step not in known:
        raise pipeline.error(f"there is no source or step {step}; there are {known}")
    validate_topics(pipeline)
    apply_settings(spark, pipeline.spark_settings)

    def open_source(source: Source) -> DataFrame:
        try:
            table = read_newest(pipeline, source, sample)
        except BadValue as error:
            hint = "bad-values: drop or quarantine lets others through"
            raise pipeline.error(f"source {source.name}: {error}; {hint}", source.line) from error
        return spark.createDataFrame(table)

    problems: list[Problem] = []
    frames = build_frames(spark, pipeline, problems, open_source)
    if problems:
        raise PipelineError(pipeline.path, problems)
    for dataset in pipeline.datasets:
        if not step or dataset.name == step:
            kind = "source" if isinstance(dataset, Source) else "step"
            try:
                yield _preview(frames, dataset.name, kind, rows)
            except PySparkException as error:
                message = f"{kind} {dataset.name}: {describe_error(error).message}"
                raise pipeline.error(message, dataset.line) from error


def _preview(frames: Frames, name: str, kind: str, rows: int) -> Preview:
    table = frames.good[name].limit(_ROWS_MAX).toArrow()
    refused: dict[str, int] = {}
    if name in frames.bad:
        for headers in frames.bad[name].toArrow()["headers"].to_pylist():
            reason = next(each["value"] for each in headers if each["key"] == HEADER_REASON)
            refused[reason.decode()] = refused.get(reason.decode(), 0) + 1
    shown = table.slice(0, rows).to_pylist()
    return Preview(name, kind, table.column_names, shown, len(table), refused)
