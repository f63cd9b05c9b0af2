"""`ottla demo pipeline`: a broker, a load and a pipeline, whose totals are checked in the end."""

import contextlib
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from ottla.cli.demo.demo_cluster import DemoCluster
from ottla.cli.demo.orders import ORDERS, PARTITIONS, Load
from ottla.cli.demo.totals import find_difference, read_totals
from ottla.cli.errors import CommandError, UsageError
from ottla.cli.output import print_line
from ottla.cli.pipelines.options import PipelineOptions, spark_errors
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.errors import WireError
from ottla.client.wire.topics import ensure_topic

FILE = Path(__file__).with_name("pipeline.yaml")
START_TIMEOUT_MS = 120_000
TOTALS_TIMEOUT_S = 600.0


def pipeline(*, seconds: float = 20, rate: int = 2_000) -> None:
    """Start a broker, write orders to it, and let a pipeline count them, exactly once.

    Everything runs on this machine, in a temporary directory that is removed at the end.

    Args:
        seconds: Seconds to write orders.
        rate: Orders per second.
    """
    if seconds <= 0 or rate < 1:
        raise UsageError("--seconds and --rate must be more than 0")
    with (
        tempfile.TemporaryDirectory(prefix="ottla-demo-") as directory,
        _broker(Path(directory)) as bootstrap,
        spark_errors(),
    ):
        load = Load(bootstrap, rate=rate, seconds=seconds)
        difference = _run(bootstrap, Path(directory), load)
    if difference:
        raise CommandError(f"the totals are not right: {difference}")
    print_line(
        f"{load.count + load.closing_count} rows: {load.count} orders, {load.bad_count} of them put"
        f" aside, and {load.closing_count} that close the last minute. {len(load.orders)} totals of"
        " customers and minutes in the topic orders-per-minute: all are right, and none is there"
        " twice"
    )


@contextlib.contextmanager
def _broker(directory: Path) -> Iterator[str]:
    """Its address; it ends with the context."""
    with DemoCluster(directory, threading.Event(), nodes=1) as broker:
        broker.start(1)
        print_line(f"a broker on {broker.bootstrap}, with data in {directory}", sys.stderr)
        try:
            with Cluster(broker.bootstrap, retry_timeout_ms=START_TIMEOUT_MS) as cluster:
                ensure_topic(cluster, ORDERS, partitions=PARTITIONS)
            yield broker.bootstrap
        except WireError as error:
            raise CommandError(
                f"the broker of the demonstration does not answer: {error}"
            ) from error


def _run(bootstrap: str, directory: Path, load: Load) -> str:
    """What is not right in the end."""
    options = PipelineOptions(set_=[f"servers={bootstrap}"], checkpoints=str(directory / "state"))
    pipeline = options.load(FILE)
    from pyspark_ottla.pipeline.run import PipelineRun
    from pyspark_ottla.pipeline.view import open_view

    print_line("starting Spark, which takes some seconds", sys.stderr)
    session = options.open_session(pipeline, directory / "spark.log")
    view = open_view(sys.stderr)
    try:
        running = PipelineRun(session, pipeline, once=False, watch=view.show, show=view.print)
        differences: list[str] = []
        stopping = threading.Event()

        def stop(*_: object) -> None:
            stopping.set()
            running.stop()

        def write_and_check() -> None:
            load.run(stopping)
            if not stopping.is_set():
                written = read_totals(bootstrap, load, TOTALS_TIMEOUT_S)
                differences.append(find_difference(written, load))
            running.stop()

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
        running.start()
        watcher = threading.Thread(target=write_and_check)
        watcher.start()
        try:
            running.wait()
        finally:
            stopping.set()
            watcher.join()
    finally:
        view.close()
        with contextlib.suppress(OSError):
            session.stop()
    return differences[0] if differences else "the demonstration was stopped"
