"""A pipeline at work: starts its queries, watches them, and stops them in good order.

When one query fails all are stopped: what is left in a checkpoint is where the next run goes on.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pyspark_ottla.pipeline.model import Pipeline
from pyspark_ottla.pipeline.problems import PipelineError, Problem
from pyspark_ottla.pipeline.progress import Progress
from pyspark_ottla.pipeline.spark_errors import NO_PYTHON, describe_error
from pyspark_ottla.pipeline.topics import make_topics
from pyspark_ottla.pipeline.validate import validate_pipeline
from pyspark_ottla.pipeline.writers import Query, build_queries

_POLL_S = 0.2
# What a query that starts again gets over; what the failed one had done is not done again. A Python
# process that Spark starts has ten seconds to come up, which is not enough on a very busy machine.
# The other was seen once, with plans that are serialized well otherwise.
_MAY_PASS = (NO_PYTHON, "Task not serializable")
_RESTARTS_MAX = 5
_GRACE_S = 10.0

Watch = Callable[[Progress], None]


class PipelineRun:
    """One run, from `start` to `wait`; `stop` may be called from anywhere, also a signal."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        *,
        once: bool,
        watch: Watch = lambda _: None,
        show: Any = print,
    ) -> None:
        self.progress = Progress(pipeline.name)
        self._spark = spark
        self._pipeline = pipeline
        self._once = once
        self._watch = watch
        self._show = show
        self._stopping = threading.Event()
        self._restarts = 0
        self._running: list[tuple[Query, Any]] = []

    def start(self) -> None:
        """PipelineError if it cannot be; then nothing runs."""
        frames = validate_pipeline(self._spark, self._pipeline)
        make_topics(self._pipeline)
        queries = build_queries(self._pipeline, frames, once=self._once, show=self._show)
        for query in queries:
            self._running.append((query, self._start(query)))
            self.progress.add(query.name, query.target)

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
        return self._restarts < _RESTARTS_MAX and any(said in str(error) for said in _MAY_PASS)

    def stop(self) -> None:
        self._stopping.set()

    @property
    def is_stopped(self) -> bool:
        return self._stopping.is_set()

    def wait(self) -> None:
        """Until all queries have ended, or stop was called; PipelineError if one failed."""
        try:
            while self._look() and not self._stopping.wait(_POLL_S):
                pass
            self._let_batches_end()
            self._stop_queries()
            self._look()
        except (Py4JError, OSError) as error:
            # A signal to a whole group of processes ends Spark as well; then all is stopped.
            if not self._stopping.is_set():
                reason = f"Spark has ended: {error}"
                raise PipelineError(str(self._pipeline.path), [Problem(0, reason)]) from error
        except PipelineError:
            self._stop_queries()
            raise

    def _look(self) -> bool:
        """Note what the queries say; whether one of them still runs."""
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
        """True; PipelineError if the query failed for a reason that stays."""
        query, _ = self._running[index]
        if not self._may_pass(error):
            self.progress.fail(query.name, describe_error(error).message)
            self._watch(self.progress)
            raise self._failed(query, error) from error
        self._restarts += 1
        self._running[index] = (query, self._start(query))
        return True

    def _let_batches_end(self) -> None:
        """Spark stops a query in the middle of a batch, which the next run does again."""
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
        message = f"{query.name}: {describe_error(error).message}"
        return PipelineError(str(self._pipeline.path), [Problem(query.line, message)])


def _batches(started: Any) -> tuple[str, ...]:
    """Of those that have ended, the times; Spark remembers the last hundred."""
    return tuple(report["timestamp"] for report in started.recentProgress)


def run_pipeline(spark: SparkSession, pipeline: Pipeline) -> Progress:
    """Everything that there is, then the end; returns what was done."""
    run = PipelineRun(spark, pipeline, once=True)
    run.start()
    run.wait()
    return run.progress
