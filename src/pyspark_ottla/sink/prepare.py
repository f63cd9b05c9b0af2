"""The first phase, in a task: write in a transaction that stays open."""

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from ottla.client.wire.cluster import Cluster, CoordinatorType
from ottla.client.wire.errors import BrokerError, WireError
from ottla.client.wire.producing import Producer, init_transactions
from ottla.client.wire.transactions import OpenTransaction, abort_transactions
from ottla.protocol.errors import ErrorCode
from pyspark_ottla.cluster_pool import borrow
from pyspark_ottla.sink.columns import Portion
from pyspark_ottla.sink.decisions import Decisions, Prepared
from pyspark_ottla.sink.identity import BatchName
from pyspark_ottla.sink.options import SinkOptions
from pyspark_ottla.sink.producer import TaskProducer
from pyspark_ottla.sink.two_phase import is_decided

# Too old a broker, or one that does not allow for it.
_NOT_TWO_PHASE = (ErrorCode.unsupported_version, ErrorCode.transactional_id_authorization_failed)
_ABORT_TIMEOUT_MS = 5_000


class Outcome(NamedTuple):
    prepared: Prepared | None  # None: there is nothing to end.
    is_two_phase: bool = True
    coordinator: tuple[str, int] | None = None  # Whom to tell how it ends, as far as is known.


class _Opened(NamedTuple):
    producer: Producer
    is_two_phase: bool


def prepare(
    options: SinkOptions,
    batch: BatchName,
    query_id: str,
    task: tuple[int, int],
    portions: Iterator[Portion],
) -> Outcome:
    """`task` is partition and attempt. A batch that is decided already is not written again."""
    with borrow(options) as cluster:
        decisions = Decisions(cluster, batch.sink_id)

        def is_late() -> bool:
            return is_decided(decisions.last(), batch, query_id)

        if _may_be_decided(batch) and is_late():
            return _skip(portions)
        transactional_id = batch.transactional_id(*task)

        def open_transaction() -> _Opened:
            if options.topic is not None:
                cluster.topic_to_write(options.topic)
            decisions.look_up()
            return _open(cluster, transactional_id, options)

        first, opened = _first_rows(portions, open_transaction, batch)
        if first is None or opened is None:
            return Outcome(None)
        transaction = OpenTransaction(transactional_id, opened.producer)
        rows = itertools.chain([first], portions)
        try:
            if not _write(options, cluster, transaction, task[0], rows, is_late):
                prepared = Prepared(*task, opened.producer)
                return Outcome(prepared, opened.is_two_phase, _coordinator(cluster, transaction))
        except BaseException:
            _abort_if_possible(options, transaction)
            raise
        abort_transactions(cluster, [transaction])
        return Outcome(None)


# By sink and run, of tasks of this process: whether the last one had rows.
_runs_seen: dict[tuple[str, str], bool] = {}


def _may_be_decided(batch: BatchName) -> bool:
    """Only the first batch of a run can have been decided before: by the run before.

    A task that is late, of any batch, learns of it when it has written.
    """
    return (batch.sink_id, batch.run_id) not in _runs_seen


def _first_rows(
    portions: Iterator[Portion], open_transaction: Callable[[], _Opened], batch: BatchName
) -> tuple[Portion | None, _Opened | None]:
    """The transaction is opened while Spark brings the first rows, if the task before had some.

    One that is opened for nothing holds nothing up, but the coordinator remembers it for days.
    """
    run = batch.sink_id, batch.run_id
    if _runs_seen.get(run):
        with ThreadPoolExecutor(1) as thread:
            opening = thread.submit(open_transaction)
            first = next(portions, None)
            opened: _Opened | None = opening.result()
    else:
        first = next(portions, None)
        opened = None if first is None else open_transaction()
    _runs_seen[run] = first is not None
    return first, opened


def _skip(portions: Iterator[Portion]) -> Outcome:
    for _ in portions:
        pass  # Spark does not expect a task to leave rows behind.
    return Outcome(None)


def _write(
    options: SinkOptions,
    cluster: Cluster,
    transaction: OpenTransaction,
    first_partition: int,
    portions: Iterator[Portion],
    is_late: Callable[[], bool],
) -> bool:
    """Whether the batch was decided without it.

    Asked when all partitions are in the transaction, so that whoever decides later finds it open;
    the last rows may be on their way still.
    """
    with TaskProducer(
        options,
        cluster,
        transaction.producer,
        transactional_id=transaction.transactional_id,
        first_partition=first_partition,
    ) as writer:
        for portion in portions:
            writer.write(portion)
        return is_late()


def _open(cluster: Cluster, transactional_id: str, options: SinkOptions) -> _Opened:
    timeout_ms = options.transaction_timeout_ms
    try:
        opened = init_transactions(cluster, transactional_id, timeout_ms, two_phase=True)
        return _Opened(opened.producer, True)
    except BrokerError as error:
        if error.code not in _NOT_TWO_PHASE:
            raise
    return _Opened(init_transactions(cluster, transactional_id, timeout_ms).producer, False)


def _coordinator(cluster: Cluster, transaction: OpenTransaction) -> tuple[str, int] | None:
    kind = CoordinatorType.TRANSACTION
    return cluster.coordinator_address(kind, transaction.transactional_id)


def _abort_if_possible(options: SinkOptions, transaction: OpenTransaction) -> None:
    """At once, so that nobody waits for it; if not, the next commit of the sink does."""
    brief = dataclasses.replace(options, retry_timeout_ms=_ABORT_TIMEOUT_MS)
    with contextlib.suppress(WireError), brief.connect() as cluster:
        abort_transactions(cluster, [transaction])
