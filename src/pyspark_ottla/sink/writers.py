"""What Spark calls to write a batch or a stream.

`write` runs in tasks; `commit` and `abort` run on the driver, in objects rebuilt from the options.
Spark also calls `abort` after a failed `commit`, and both again for a batch that a restarted query
repeats.
"""

import logging
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from ottla.client.wire.cluster import Cluster, CoordinatorType
from ottla.client.wire.producing import init_producer
from pyspark_ottla.cluster_pool import borrow
from pyspark_ottla.sink.columns import validate_columns
from pyspark_ottla.sink.decisions import Decision, Prepared
from pyspark_ottla.sink.identity import BatchName
from pyspark_ottla.sink.options import Delivery, SinkOptions
from pyspark_ottla.sink.prepare import prepare
from pyspark_ottla.sink.producer import TaskProducer, portions
from pyspark_ottla.sink.two_phase import KeptClaims, abort_batch, commit_batch
from pyspark_ottla.spark_api import StreamArrowWriter
from pyspark_ottla.task_context import current_batch, current_task
from pyspark_ottla.workarounds.settled_worker import settle

logger = logging.getLogger(__name__)

_kept_claims = KeptClaims()  # In this process.

ORDINARY_TRANSACTIONS = (
    "the brokers do not take two-phase commit (KIP-939), so the transactions of this sink have a"
    " timeout: a query that is down for longer than kafka.transaction.timeout.ms between the"
    " decision about a batch and its end loses that batch. Apache Kafka does not have it"
    " yet; on Ottla set transaction.two.phase.commit.enable=true"
)


@dataclass
class TaskMessage(WriterCommitMessage):
    run_id: str
    query_id: str
    prepared: Prepared | None = None  # None: no rows, or the batch was already decided.
    is_two_phase: bool = True
    coordinator: tuple[str, int] | None = None  # Of the transaction, as far as the task knows.


class StreamWriter(StreamArrowWriter):
    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        validate_columns(schema, has_topic_option=options.topic is not None)
        self._options = options

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        if self._options.delivery is Delivery.AT_LEAST_ONCE:
            return _write_at_least_once(self._options, iterator)
        batch = current_batch()
        name = BatchName(self._options.sink_id, batch.id, batch.run_id)
        return _write_exactly_once(self._options, name, batch.query_id, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        if self._options.delivery is Delivery.EXACTLY_ONCE:
            _commit(self._options, batchId, _of_tasks(messages))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        tasks = _of_tasks(messages)
        # Without messages nothing is known of this run: the sink's next commit cleans up.
        if tasks and self._options.delivery is Delivery.EXACTLY_ONCE:
            _abort(self._options, batchId, tasks[0].run_id)


class BatchWriter(DataSourceArrowWriter):
    """Spark pickles this object, so tasks and driver share one run id."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        validate_columns(schema, has_topic_option=options.topic is not None)
        self._options = options
        self._run_id = uuid.uuid4().hex

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        if self._options.delivery is Delivery.AT_LEAST_ONCE:
            return _write_at_least_once(self._options, iterator)
        batch = BatchName(self._options.sink_id, self._options.batch_id, self._run_id)
        # Of the stream whose foreachBatch this is; its checkpoint counts the batches.
        query_id = current_task().getLocalProperty("sql.streaming.queryId") or ""
        return _write_exactly_once(self._options, batch, query_id, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        if self._options.delivery is Delivery.EXACTLY_ONCE:
            _commit(self._options, self._options.batch_id, _of_tasks(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        if self._options.delivery is Delivery.EXACTLY_ONCE:
            _abort(self._options, self._options.batch_id, self._run_id)


def _of_tasks(messages: Sequence[WriterCommitMessage | None]) -> list[TaskMessage]:
    return [message for message in messages if isinstance(message, TaskMessage)]


def _write_at_least_once(options: SinkOptions, iterator: Iterator[Any]) -> TaskMessage:
    partition = current_task().partitionId()
    with (
        borrow(options.cluster) as cluster,
        TaskProducer(options, cluster, init_producer(cluster), first_partition=partition) as writer,
    ):
        for portion in portions(iterator):
            writer.write(portion)
    settle()
    return TaskMessage("", "")


def _write_exactly_once(
    options: SinkOptions, batch: BatchName, query_id: str, iterator: Iterator[Any]
) -> TaskMessage:
    task = current_task()
    numbers = task.partitionId(), task.taskAttemptId()
    outcome = prepare(options, batch, query_id, numbers, portions(iterator))
    settle()
    return TaskMessage(batch.run_id, query_id, *outcome)


def _commit(options: SinkOptions, batch_id: int, messages: Sequence[TaskMessage]) -> None:
    if not messages:
        return  # No task ran, so there are no rows, now or in a repeat.
    first = messages[0]
    decision = Decision(
        BatchName(options.sink_id, batch_id, first.run_id),
        first.query_id,
        tuple(message.prepared for message in messages if message.prepared is not None),
    )
    with borrow(options.cluster) as cluster:
        _note_coordinators(cluster, decision.batch, messages)
        before = commit_batch(cluster, decision, _kept_claims)
    is_first_of_run = before is None or before.batch.run_id != first.run_id
    if is_first_of_run and not all(message.is_two_phase for message in messages):
        # Not a Python warning, which is shown once per process, whatever the query.
        logger.warning("sink %s: %s", options.sink_id, ORDINARY_TRANSACTIONS)
    settle()


def _note_coordinators(cluster: Cluster, batch: BatchName, messages: Sequence[TaskMessage]) -> None:
    """Saves lookups; a coordinator that has moved is looked up when it refuses."""
    for message in messages:
        if message.prepared is not None and message.coordinator is not None:
            task = message.prepared.partition, message.prepared.attempt
            transactional_id = batch.transactional_id(*task)
            cluster.note_coordinator(
                CoordinatorType.TRANSACTION, transactional_id, message.coordinator
            )


def _abort(options: SinkOptions, batch_id: int, run_id: str) -> None:
    with borrow(options.cluster) as cluster:
        abort_batch(cluster, BatchName(options.sink_id, batch_id, run_id))
