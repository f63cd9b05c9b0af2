"""`ottla pipeline run`: run a pipeline, until it is stopped or has done what there is."""

import contextlib
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.cli.errors import UsageError
from ottla.cli.output import print_json, print_line
from ottla.cli.parameters import AsJson, Flag, validate_port
from ottla.cli.pipelines.options import DEFAULT_OPTIONS, PipelineOptions, spark_errors

if TYPE_CHECKING:
    from pyspark_ottla.pipeline.model import Pipeline
    from pyspark_ottla.pipeline.progress import Progress
    from pyspark_ottla.pipeline.view import View

HOST = "127.0.0.1"


def run(
    file: Path,
    /,
    *,
    once: Flag = False,
    accept_changes: Flag = False,
    metrics_port: int | None = None,
    metrics_host: str = HOST,
    spark_log: Path | None = None,
    options: PipelineOptions = DEFAULT_OPTIONS,
    as_json: AsJson = False,
) -> None:
    """Run a pipeline until ctrl-c or SIGTERM; the next run resumes where it stopped.

    Args:
        file: The pipeline, in YAML.
        once: Process what is available, then stop.
        accept_changes: Resume from the checkpoints although the pipeline has changed in a way that
            does not fit them; `ottla pipeline plan` shows the changes.
        metrics_port: Port to serve metrics for Prometheus on; 0 takes a free port.
        metrics_host: Address to serve them on.
        spark_log: File for Spark's own log; by default one in the directory for temporary files.
    """
    validate_port("--metrics-port", metrics_port)
    pipeline = options.load(file)
    with spark_errors():
        from pyspark_ottla.pipeline.validate import validate_topics
        from pyspark_ottla.pipeline.view import open_view

        validate_topics(pipeline)  # Does not need Spark, which takes seconds to start.
        view = open_view(sys.stderr)
        try:
            progress, stopped = _run(
                pipeline,
                options,
                view,
                once=once,
                accept_changes=accept_changes,
                metrics=(metrics_host, metrics_port),
                spark_log=spark_log,
            )
        finally:
            view.close()
    print_end(progress, as_json=as_json, stopped=stopped)


def _run(
    pipeline: "Pipeline",
    options: PipelineOptions,
    view: "View",
    *,
    once: bool,
    accept_changes: bool,
    metrics: tuple[str, int | None],
    spark_log: Path | None,
) -> "tuple[Progress, bool]":
    """Also whether it was stopped, and did not end by itself."""
    from pyspark_ottla.pipeline.run import PipelineRun

    log = spark_log or Path(tempfile.gettempdir(), f"ottla-{pipeline.name}-spark.log")

    # Nothing has begun while Spark starts, so a signal then ends it without more ado.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if sys.stderr.isatty():
        view.print(options.describe_start(log))
    session = options.open_session(pipeline, log)
    try:
        running = PipelineRun(
            session,
            pipeline,
            once=once,
            accept_changes=accept_changes,
            watch=view.show,
            show=print_line,
        )
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: running.stop())
        with _metrics(*metrics, running.progress, view):
            running.start()
            running.wait()
        return running.progress, running.is_stopped
    finally:
        with contextlib.suppress(OSError):  # A signal to all processes may have ended Spark first.
            session.stop()


@contextlib.contextmanager
def _metrics(host: str, port: int | None, progress: "Progress", view: "View") -> Iterator[None]:
    if port is None:
        yield
        return
    from pyspark_ottla.pipeline.metrics import MetricsServer

    try:
        server = MetricsServer(host, port, progress)
    except OSError as error:
        raise UsageError(f"--metrics-port {port}: {error.strerror}") from None
    view.print(f"metrics at http://{host}:{server.port}/metrics")
    try:
        yield
    finally:
        server.close()


def print_end(progress: "Progress", *, as_json: bool, stopped: bool = False) -> None:
    if as_json:
        sinks = [
            {
                "sink": query.name,
                "target": query.target,
                "batches": query.batches,
                "rows_in": query.rows_in,
                "rows_out": query.rows_out,
                "refused": query.refused,
            }
            for query in progress.queries.values()
        ]
        print_json({"pipeline": progress.pipeline, "stopped": stopped, "sinks": sinks})
        return
    from pyspark_ottla.pipeline.view import counted

    for query in progress.queries.values():
        if stopped and not query.batches:
            print_line(
                f"{query.name}: stopped before its first batch finished; "
                "the next run starts it again"
            )
            continue
        rows = f"{counted(query.rows_in, 'row')} in, {counted(query.rows_out, 'row')} out"
        print_line(f"{query.name}: {rows} to {query.target}")
