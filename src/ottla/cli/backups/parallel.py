"""Work on many partitions in a few threads, each with connections of its own; and a bar for it."""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self, TypeVar

from kio.schema.describe_cluster.v2.request import DescribeClusterRequest

from ottla.cli.broker_call import bootstrap_broker
from ottla.cli.connection import Connection
from ottla.cli.errors import CommandError, ExitCode, ManyErrors
from ottla.cli.parameters import validate_positive
from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.errors import BrokerError, Unreachable, WireError
from ottla.protocol.errors import ErrorCode

T = TypeVar("T")

RETRY_MS = 60_000
PAUSE_S_MAX = 1.0
LOOK_INTERVAL_S = 5.0
FENCED_BROKERS_VERSION = 2  # Of DescribeCluster.


def wire_cluster(connection: Connection, *, gives_up: bool = False) -> Cluster:
    """For one thread. With `gives_up` it does not wait for a cluster without a controller."""
    cluster = Cluster(
        connection.bootstrap_server,
        client_id="ottla-cli",
        retry_timeout_ms=RETRY_MS,
        security=connection.security(),
    )
    if gives_up:
        cluster.on_retry = ControllerWatch(connection, lambda: cluster.servers)
    return cluster


class ControllerWatch:
    """Looks for a controller now and then while an operation is tried again.

    Not before the cluster has had time to elect one, and on any of its brokers, because the one
    that failed may be the one that was named.
    """

    def __init__(self, connection: Connection, servers: Callable[[], str]) -> None:
        self._connection = connection
        self._servers = servers
        self._looked_after_s = 0.0  # Since the operation began.

    def __call__(self, trying_s: float) -> None:
        if trying_s < self._looked_after_s:
            self._looked_after_s = 0.0  # It is another operation.
        if trying_s >= self._looked_after_s + LOOK_INTERVAL_S:
            self._looked_after_s = trying_s
            check_controller(replace(self._connection, bootstrap_server=self._servers()))


@contextmanager
def wire_errors(connection: Connection | None = None) -> Iterator[None]:
    """What a cluster did not do, in the words of the command.

    With a connection, all that is done is done to its cluster, whose missing nodes are named.
    """
    try:
        yield
    except Unreachable as error:
        if connection is not None:
            raise connection.silent(str(error)) from None
        raise CommandError(str(error), ExitCode.UNREACHABLE) from None
    except WireError as error:
        raise CommandError(str(error)) from None


def check_controller(connection: Connection) -> None:
    """Say at once which nodes are missing: what is copied waits a minute for each of them."""
    with bootstrap_broker(connection, looks=False) as broker:
        shows_fenced = broker.newest_version(DescribeClusterRequest) >= FENCED_BROKERS_VERSION
    if shows_fenced:
        connection.check_nodes(tolerates_few=True)


def for_each(
    topic_partitions: Sequence[TopicPartition],
    work: Callable[[TopicPartition], T],
    threads: int | ThreadPoolExecutor,
) -> dict[TopicPartition, T]:
    """The results, when all have ended; ManyErrors if something went wrong."""
    results: dict[TopicPartition, T] = {}
    problems: dict[TopicPartition, str] = {}
    executor = threads if isinstance(threads, ThreadPoolExecutor) else executor_of(threads)
    try:
        futures = {
            executor.submit(work, topic_partition): topic_partition
            for topic_partition in topic_partitions
        }
        for future in as_completed(futures):
            try:
                results[futures[future]] = future.result()
            except (CommandError, WireError, OSError) as error:
                problems[futures[future]] = str(error)
    finally:
        if executor is not threads:
            executor.shutdown(wait=False, cancel_futures=True)
    if problems:
        raise ManyErrors([f"{name}: {text}" for name, text in sorted(problems.items())])
    return results


def executor_of(threads_count: int) -> ThreadPoolExecutor:
    validate_positive("--threads", threads_count)
    return ThreadPoolExecutor(threads_count)


class Progress:
    """Offsets and bytes that were copied; shown on a terminal."""

    def __init__(self, offsets_total: int) -> None:
        self._guard = threading.Lock()
        self._total = offsets_total
        self.offsets = 0
        self.bytes = 0
        self._bar: tuple[Any, Any] | None = None
        self._is_over = False

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = (
                BarColumn(),
                TextColumn("{task.fields[copied]}"),
                TimeRemainingColumn(),
            )
            bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self._bar = bar, bar.add_task("", total=self._total, copied="")
            bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        if self._bar is not None:
            self._bar[0].stop()

    def on_copied(self, offsets: int, size: int) -> None:
        """Ends a thread that nobody waits for any more, as after ctrl-c."""
        if self._is_over:
            raise CommandError("stopped")
        from ottla.cli.output import format_size

        with self._guard:
            self.offsets += offsets
            self.bytes += size
            if self._bar is not None:
                bar, task = self._bar
                bar.update(task, completed=self.offsets, copied=format_size(self.bytes))


class Patience:
    """With a copy that fails: as long as it makes progress, and for a minute without."""

    def __init__(self, retry_ms: int = RETRY_MS) -> None:
        self._retry_ms = retry_ms
        self._deadline = 0.0
        self._pause_s = 0.0
        self._start_again()

    def wait(self, error: WireError, *, progressed: bool) -> None:
        """Before the next try; raises the error if there is to be none."""
        # The end of the target's log moves with its leader, the start of the source's by retention.
        has_moved = isinstance(error, BrokerError) and error.code is ErrorCode.offset_out_of_range
        if not (error.may_pass or has_moved):
            raise error
        if progressed:
            self._start_again()
        elif time.monotonic() >= self._deadline:
            raise error
        time.sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, PAUSE_S_MAX)

    def _start_again(self) -> None:
        self._deadline = time.monotonic() + self._retry_ms / 1000
        self._pause_s = 0.05
