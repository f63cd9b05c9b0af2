"""The first phase, in a task: write in a transaction that stays open."""

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from ottla.client.wire.cluster import Cluster, CoordinatorType, TopicPartition
from ottla.client.wire.errors import BrokerError, WireError
from ottla.client.wire.producing import add_partitions, init_transactions
from ottla.client.wire.transactions import OpenTransaction, abort_transactions
from ottla.protocol.errors import ErrorCode
from pyspark_ottla.cluster_pool import borrow
from pyspark_ottla.sink.columns import Portion
from pyspark_ottla.sink.decisions import Decisions, Prepared
from pyspark_ottla.sink.identity import BatchName
from pyspark_ottla.sink.options import SinkOptions
from pyspark_ottla.sink.producer import TaskProducer
from pyspark_ottla.sink.two_phase import is_decided

# The broker is too old, or does not allow it.
_NOT_TWO_PHASE = (ErrorCode.unsupported_version, ErrorCode.transactional_id_authorization_failed)
_ABORT_TIMEOUT_MS = 5_000


class Outcome(NamedTuple):
    prepared: Prepared | None  # None: there is nothing to end.
    is_two_phase: bool = True
    coordinator: tuple[str, int] | None = None  # Who must be told how it ends, if known.


class _Opened(NamedTuple):
    transaction: OpenTransaction
    is_two_phase: bool
    partitions: frozenset[TopicPartition] = frozenset()  # Already in the transaction.


def prepare(
    options: SinkOptions,
    batch: BatchName,
    query_id: str,
    task: tuple[int, int],
    portions: Iterator[Portion],
) -> Outcome:
    """`task` is partition and attempt. A batch already decided is not written again."""
    with borrow(options.cluster) as cluster:
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
            opened = _open(cluster, transactional_id, options)
            return _add_expected(options, cluster, opened, _expected(batch, options, cluster))

        first, opened = _first_rows(options, portions, open_transaction, batch)
        if opened is None:
            return Outcome(None)
        transaction = opened.transaction
        if first is None:
            if opened.partitions:
                abort_transactions(cluster, [transaction])
            return Outcome(None)
        rows = itertools.chain([first], portions)
        try:
            writer = TaskProducer(
                options,
                cluster,
                transaction.producer,
                transactional_id=transactional_id,
                added=opened.partitions,
                first_partition=task[0],
            )
            is_too_late = _write(writer, rows, is_late)
        except BaseException:
            _abort_if_possible(options, transaction)
            raise
        _note_written(batch, writer.partitions)
        if not is_too_late:
            prepared = Prepared(*task, transaction.producer)
            return Outcome(prepared, opened.is_two_phase, _coordinator(cluster, transaction))
        abort_transactions(cluster, [transaction])
        return Outcome(None)


class _Seen(NamedTuple):
    """What this process knows from earlier tasks of a sink's run."""

    partitions: frozenset[TopicPartition]  # Written by the last one; empty if it had no rows.
    is_steady: bool = False  # Whether the one before wrote to the same.


_runs_seen: dict[tuple[str, str], _Seen] = {}  # By sink and run.


def _may_be_decided(batch: BatchName) -> bool:
    """Only the first batch of a run can already be decided: by the previous run.

    A late task, of any batch, finds out after writing.
    """
    return (batch.sink_id, batch.run_id) not in _runs_seen


def _note_written(batch: BatchName, partitions: frozenset[TopicPartition]) -> None:
    run = batch.sink_id, batch.run_id
    before = _runs_seen.get(run)
    _runs_seen[run] = _Seen(partitions, before is not None and before.partitions == partitions)


def _expected(
    batch: BatchName, options: SinkOptions, cluster: Cluster
) -> frozenset[TopicPartition]:
    """Partitions that the task will probably write to, judging by the tasks before."""
    seen = _runs_seen.get((batch.sink_id, batch.run_id))
    if seen is None or not seen.is_steady or options.topic is None:
        return frozenset()
    leaders = cluster.topic_to_write(options.topic).leaders
    known = all(each.partition in leaders for each in seen.partitions)
    return seen.partitions if known else frozenset()


def _add_expected(
    options: SinkOptions, cluster: Cluster, opened: _Opened, expected: frozenset[TopicPartition]
) -> _Opened:
    """Adding a partition that then gets no rows costs one marker in it.

    Skipped for a transaction with a timeout, which would start now: the rows may take longer.
    """
    if not expected or not opened.is_two_phase:
        return opened
    transaction = opened.transaction
    try:
        add_partitions(cluster, transaction.transactional_id, transaction.producer, expected)
    except BaseException:
        _abort_if_possible(options, transaction)
        raise
    return opened._replace(partitions=expected)


def _first_rows(
    options: SinkOptions,
    portions: Iterator[Portion],
    open_transaction: Callable[[], _Opened],
    batch: BatchName,
) -> tuple[Portion | None, _Opened | None]:
    """Opens the transaction while Spark delivers the first rows, if the previous task had some.

    One opened in vain holds up nothing, but the coordinator remembers it for days.
    """
    seen = _runs_seen.get((batch.sink_id, batch.run_id))
    opened: _Opened | None = None
    if seen is not None and seen.partitions:
        with ThreadPoolExecutor(1) as thread:
            opening = thread.submit(open_transaction)
            try:
                first = next(portions, None)
            except BaseException:
                if opening.exception() is None and opening.result().partitions:
                    _abort_if_possible(options, opening.result().transaction)
                raise
            opened = opening.result()
    else:
        first = next(portions, None)
        opened = None if first is None else open_transaction()
    if first is None:
        _note_written(batch, frozenset())
    return first, opened


def _skip(portions: Iterator[Portion]) -> Outcome:
    for _ in portions:
        pass  # Spark expects a task to consume all its rows.
    return Outcome(None)


def _write(writer: TaskProducer, portions: Iterator[Portion], is_late: Callable[[], bool]) -> bool:
    """Write all rows; returns whether the batch was decided without them.

    Checked once all partitions are in the transaction, so that a later decision finds it open; the
    last rows may still be in flight.
    """
    with writer:
        for portion in portions:
            writer.write(portion)
        return is_late()


def _open(cluster: Cluster, transactional_id: str, options: SinkOptions) -> _Opened:
    timeout_ms = options.transaction_timeout_ms
    try:
        opened = init_transactions(cluster, transactional_id, timeout_ms, two_phase=True)
        return _Opened(OpenTransaction(transactional_id, opened.producer), True)
    except BrokerError as error:
        if error.code not in _NOT_TWO_PHASE:
            raise
    opened = init_transactions(cluster, transactional_id, timeout_ms)
    return _Opened(OpenTransaction(transactional_id, opened.producer), False)


def _coordinator(cluster: Cluster, transaction: OpenTransaction) -> tuple[str, int] | None:
    kind = CoordinatorType.TRANSACTION
    return cluster.coordinator_address(kind, transaction.transactional_id)


def _abort_if_possible(options: SinkOptions, transaction: OpenTransaction) -> None:
    """Abort at once, so that nobody waits for it; if that fails, the sink's next commit does it."""
    brief = dataclasses.replace(options.cluster, retry_timeout_ms=_ABORT_TIMEOUT_MS)
    with contextlib.suppress(WireError), brief.connect() as cluster:
        abort_transactions(cluster, [transaction])
