"""Runs a pipeline: starts its queries, watches them, and stops them cleanly.

When one query fails, all are stopped: the next run continues from the checkpoints.
"""

import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pyspark_ottla.pipeline.changes import Remembered, with_record
from pyspark_ottla.pipeline.coverage import fix_begins
from pyspark_ottla.pipeline.evolution import take_added
from pyspark_ottla.pipeline.frames import Frames
from pyspark_ottla.pipeline.lineage import Lineage
from pyspark_ottla.pipeline.lineage_events import send_event
from pyspark_ottla.pipeline.model import Pipeline
from pyspark_ottla.pipeline.problems import PipelineError
from pyspark_ottla.pipeline.progress import Progress
from pyspark_ottla.pipeline.record import RecordFile
from pyspark_ottla.pipeline.renames import adopt_renamed
from pyspark_ottla.pipeline.run_lock import RunLock
from pyspark_ottla.pipeline.shape import Shape
from pyspark_ottla.pipeline.spark_errors import describe_error, may_pass
from pyspark_ottla.pipeline.topics import make_topics, publish_schemas
from pyspark_ottla.pipeline.validate import validate_pipeline, validate_topics
from pyspark_ottla.pipeline.writers import Query, build_queries
from pyspark_ottla.spark_api import is_connect

_POLL_S = 0.2
_RESTARTS_MAX = 5
_GRACE_S = 10.0

Watch = Callable[[Progress], None]


class PipelineRun:
    """One run, from `start` to `wait`; `stop` may be called from anywhere, even by a signal."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        *,
        once: bool,
        accept_changes: bool = False,
        watch: Watch = lambda _: None,
        show: Any = print,
    ) -> None:
        self.progress = Progress(pipeline.name)
        self._spark = spark
        self._pipeline = pipeline
        self._once = once
        self._accept_changes = accept_changes
        self._watch = watch
        self._show = show
        self._lock = RunLock(pipeline, is_remote=is_connect(spark))
        self._stopping = threading.Event()
        self._restarts = 0
        self._lineage: Lineage | None = None
        self._running: list[tuple[Query, Any]] = []

    def start(self) -> None:
        """Raises PipelineError if it is impossible; then nothing runs."""
        self._lock.take()
        try:
            self._start_queries()
        except BaseException:
            self._lock.give_back()
            raise

    def _start_queries(self) -> None:
        file = RecordFile(self._pipeline, self._spark)
        record = adopt_renamed(self._pipeline, file)
        self._pipeline = with_record(self._pipeline, record)
        validate_topics(self._pipeline)
        self._pipeline, added = take_added(self._pipeline, record)
        self._pipeline, begins = fix_begins(self._pipeline, file)
        frames = validate_pipeline(self._spark, self._pipeline)
        remembered = Remembered(self._spark, self._pipeline, frames)
        if not self._accept_changes:
            remembered.validate()
        make_topics(self._pipeline)
        publish_schemas(self._pipeline, frames)
        remembered.write(begins, added)
        queries = build_queries(self._pipeline, frames, once=self._once, show=self._show)
        self._lineage = self._open_lineage(frames, remembered.shapes)
        for query in queries:
            self._running.append((query, self._start(query)))
            self.progress.add(query.name, query.target)
            if self._lineage is not None:
                self._lineage.start(query.name)

    def _open_lineage(self, frames: Frames, shapes: Mapping[str, Shape]) -> Lineage | None:
        target, servers = self._pipeline.lineage, self._pipeline.bootstrap_servers
        if not target:
            return None
        return Lineage(
            partial(send_event, target=target, bootstrap_servers=servers),
            self._pipeline,
            frames,
            shapes,
            spark_version=self._spark.version,
            is_stream=not self._once,
        )

    def _start(self, query: Query) -> Any:
        while True:
            try:
                return query.writer.start()
            except PySparkException as error:
                if not self._may_pass(error):
                    self._stop_queries()
                    raise self._failed(query, error) from error
                self._restarts += 1

    def _may_pass(self, error: BaseException) -> bool:
        return self._restarts < _RESTARTS_MAX and may_pass(error)

    def stop(self) -> None:
        self._stopping.set()

    @property
    def is_stopped(self) -> bool:
        return self._stopping.is_set()

    def wait(self) -> None:
        """Returns when all queries have ended or `stop` was called.

        Raises PipelineError if one failed.
        """
        try:
            self._wait()
        finally:
            if self._lineage is not None:
                self._lineage.end(self.progress)
            self._lock.give_back()

    def _wait(self) -> None:
        try:
            while self._look() and not self._stopping.wait(_POLL_S):
                pass
            self._let_batches_end()
            self._stop_queries()
            self._look()
        except (Py4JError, OSError) as error:
            # A signal to the whole process group ends Spark as well; then all is stopped.
            if not self._stopping.is_set():
                raise self._pipeline.error(f"Spark has ended: {error}") from error
        except PipelineError:
            self._stop_queries()
            raise

    def _look(self) -> bool:
        """Note the queries' progress; returns whether any still runs."""
        any_active = False
        for index, (query, started) in enumerate(self._running):
            is_active = started.isActive
            for report in started.recentProgress:
                self.progress.take(query.name, report)
            if not is_active:
                error = started.exception()
                if error is not None and not self._stopping.is_set():
                    is_active = self._start_again(index, error)
                if not is_active:
                    self.progress.end(query.name)
            any_active = any_active or is_active
        self._watch(self.progress)
        return any_active

    def _start_again(self, index: int, error: BaseException) -> bool:
        """Returns True; raises PipelineError if the query failed for a permanent reason."""
        query, _ = self._running[index]
        if not self._may_pass(error):
            self.progress.fail(query.name, describe_error(error).message)
            self._watch(self.progress)
            raise self._failed(query, error) from error
        self._restarts += 1
        self.progress.queries[query.name].restarts += 1
        self._running[index] = (query, self._start(query))
        return True

    def _let_batches_end(self) -> None:
        """Spark stops a query in the middle of a batch, which the next run then repeats."""
        deadline = time.monotonic() + _GRACE_S
        before = [_batches(started) for _, started in self._running]
        for count, (_, started) in zip(before, self._running, strict=True):
            while (
                started.isActive
                and started.status["isTriggerActive"]
                and _batches(started) == count
                and time.monotonic() < deadline
            ):
                time.sleep(_POLL_S / 10)

    def _stop_queries(self) -> None:
        for _, started in self._running:
            started.stop()

    def _failed(self, query: Query, error: BaseException) -> PipelineError:
        return self._pipeline.error(f"{query.name}: {describe_error(error).message}", query.line)


def _batches(started: Any) -> tuple[str, ...]:
    """Timestamps of finished batches; Spark keeps the last hundred."""
    return tuple(report["timestamp"] for report in started.recentProgress)


def run_pipeline(
    spark: SparkSession, pipeline: Pipeline, *, accept_changes: bool = False
) -> Progress:
    """Process everything available, then stop; returns what was done."""
    run = PipelineRun(spark, pipeline, once=True, accept_changes=accept_changes)
    run.start()
    run.wait()
    return run.progress
