"""Runs a pipeline's tests: real Spark, real decoding and state, and no broker.

A source's records are Parquet files that Spark reads as a stream, one per batch of the case, and
the sinks' input is collected.
"""

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as parquet
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from pyspark_ottla.pipeline.case_rows import as_time, find_differences
from pyspark_ottla.pipeline.cases import Case, CaseBatch
from pyspark_ottla.pipeline.expectations import HEADER_REASON
from pyspark_ottla.pipeline.frames import FrameError, Frames, build_frames
from pyspark_ottla.pipeline.model import Pipeline, Sink, SinkKind, Source
from pyspark_ottla.pipeline.samples import BadRow, columns_of, make_records
from pyspark_ottla.pipeline.session import apply_settings
from pyspark_ottla.pipeline.spark_errors import describe_error
from pyspark_ottla.value_formats import BadValue

_PARTITIONS = "spark.sql.shuffle.partitions"


class Outcome(NamedTuple):
    case: Case
    failures: list[str]  # One per line; empty if it passed.
    seconds: float


class _Failed(Exception):
    """A batch could not be run; the message says why."""


def run_case(spark: SparkSession, pipeline: Pipeline, case: Case) -> Outcome:
    started = time.monotonic()
    apply_settings(spark, {**pipeline.spark_settings, _PARTITIONS: "1"})
    directory = Path(tempfile.mkdtemp(prefix="ottla-test-"))
    failures: list[str] = []
    try:
        trial = _Trial(spark, pipeline, directory)
        for number, batch in enumerate(case.batches):
            title = f"batch {number + 1}: " if len(case.batches) > 1 else ""
            failures += [f"{title}{line}" for line in trial.run(batch)]
            if failures:
                break  # Later failures would only follow from this one.
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return Outcome(case, failures, time.monotonic() - started)


@dataclass
class _Trial:
    """One case: its queries continue from batch to batch."""

    spark: SparkSession
    pipeline: Pipeline
    directory: Path

    def __post_init__(self) -> None:
        self._batch = 0
        self._counts = dict.fromkeys(self.pipeline.sources, 0)

    def run(self, batch: CaseBatch) -> list[str]:
        """Returns deviations from what the batch expects."""
        self._batch += 1
        try:
            self._feed(batch)
            collected, watermarks = self._run_queries(batch)
        except _Failed as error:
            if batch.fails and batch.fails in str(error):
                return []
            wanted = f" (and not {batch.fails!r})" if batch.fails else ""
            return [f"it failed with {str(error)!r}{wanted}"]
        if batch.fails:
            return [f"it did not fail with {batch.fails!r}"]
        lines = []
        for name, rows in [*batch.expect.items(), *_named(batch.refused)]:
            differences = find_differences(collected[name], rows)
            lines += [f"{name}: {line}" for line in differences]
        for name, found in watermarks.items():
            if batch.watermark is not None and as_time(found) != as_time(batch.watermark):
                lines.append(f"{name}: the watermark is {found} and not {batch.watermark}")
        return lines

    def _feed(self, batch: CaseBatch) -> None:
        for name, source in self.pipeline.sources.items():
            path = self.directory / "sources" / name
            path.mkdir(parents=True, exist_ok=True)
            rows = batch.given.get(name) or []
            if not rows:
                continue
            try:
                table = make_records(self.pipeline, source, rows, self._counts[name])
            except (BadRow, BadValue) as error:
                raise _Failed(f"source {name}: {error}") from error
            self._counts[name] += len(rows)
            parquet.write_table(table, path / f"{self._batch:04}.parquet")

    def _run_queries(self, batch: CaseBatch) -> tuple[dict[str, list[Any]], dict[str, str]]:
        try:
            frames = build_frames(self.spark, self.pipeline, open_source=self._open)
            collectors = self._collectors(frames, batch)
            for collector in collectors.values():
                collector.start()
            watermarks = {name: each.wait() for name, each in collectors.items()}
        except FrameError as error:
            raise _Failed(str(error)) from error
        except PySparkException as error:
            raise _Failed(describe_error(error).message) from error
        return {name: each.rows for name, each in collectors.items()}, {
            name: found for name, found in watermarks.items() if found
        }

    def _open(self, source: Source) -> DataFrame:
        path = self.directory / "sources" / source.name
        schema = columns_of(self.pipeline, source)
        return self.spark.readStream.schema(schema).parquet(str(path))

    def _collectors(self, frames: Frames, batch: CaseBatch) -> "dict[str, _Collector]":
        """Sinks that the case does not mention run as well: they may fail."""
        found = {}
        for sink in self.pipeline.sinks.values():
            frame = _with_key(frames.good[sink.input], sink)
            found[sink.name] = _Collector(self.directory, sink.name, frame, sink.mode, dict)
        for name, frame in frames.bad.items():
            if name in batch.refused:
                query = _refused(name)
                found[query] = _Collector(self.directory, query, frame, "append", _letter)
        return found


class _Collector:
    """A query whose rows are collected."""

    def __init__(
        self, directory: Path, name: str, frame: DataFrame, mode: str, shape: Callable[[Any], Any]
    ) -> None:
        self.rows: list[Any] = []
        self._shape = shape
        self._query: Any = None
        self._writer = (
            frame.writeStream.foreachBatch(self._take)
            .outputMode(mode)
            .option("checkpointLocation", str(directory / "checkpoints" / name))
            .trigger(availableNow=True)
        )

    def start(self) -> None:
        self._query = self._writer.start()

    def wait(self) -> str:
        """Returns the watermark; empty if there is none."""
        self._query.awaitTermination()
        last = self._query.lastProgress
        return str((last or {"eventTime": {}})["eventTime"].get("watermark", ""))

    def _take(self, frame: DataFrame, _: int) -> None:
        self.rows += [self._shape(row) for row in frame.toArrow().to_pylist()]


def _refused(dataset: str) -> str:
    return f"refused by {dataset}"


def _named(refused: Any) -> list[tuple[str, Any]]:
    """A text stands for the reason alone."""
    return [
        (_refused(name), [{"reason": row} if isinstance(row, str) else row for row in rows])
        for name, rows in refused.items()
    ]


def _letter(record: dict[str, Any]) -> dict[str, Any]:
    """A dead letter's reason; key and value are compared only if a test names them."""
    headers = {each["key"]: each["value"] for each in record["headers"]}
    return {
        "reason": headers[HEADER_REASON].decode(),
        "_value": record["value"],
        "_key": record.get("key"),
    }


def _with_key(frame: DataFrame, sink: Sink) -> DataFrame:
    if sink.kind is not SinkKind.TOPIC or not sink.key or "_key" in frame.columns:
        return frame
    return frame.withColumn("_key", F.expr(sink.key[0]).cast("string"))
