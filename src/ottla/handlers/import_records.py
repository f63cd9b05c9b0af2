"""ImportRecords (10002): v0, an API of Ottla's own.

Appends record batches with their original offsets, as a follower does, to partitions of a topic
with an open `record.import`. Answered once every in-sync replica has them. An empty log begins
where the request says; a log that does not end where the request says is left unchanged. Needs
ALTER on the cluster. docs/internals/imports.md has the reasons.
"""

import asyncio

from kio.static.primitive import i64

from ottla.handlers.authorization import require_cluster
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.share_calls import NO_TOPIC
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages.import_records import (
    ImportedPartition,
    ImportedTopic,
    ImportRecordsRequest,
    ImportRecordsResponse,
    PartitionResult,
    TopicResult,
)
from ottla.protocol.times import NO_THROTTLE
from ottla.records.errors import RecordError
from ottla.replication.partition import Partition
from ottla.replication.partition_leader import PartitionLeader
from ottla.replication.waiters import Waiter
from ottla.security.acls import Operation
from ottla.storage.errors import StorageError
from ottla.storage.imported_batches import not_open


async def handle(
    broker: Broker, context: RequestContext, request: ImportRecordsRequest
) -> ImportRecordsResponse:
    require_cluster(context, Operation.ALTER)
    timeout_s = request.timeout.total_seconds()
    topics = await asyncio.gather(*(_topic(broker, each, timeout_s) for each in request.topics))
    return ImportRecordsResponse(throttle_time=NO_THROTTLE, topics=tuple(topics))


def error_response(request: ImportRecordsRequest, error: ApiError) -> ImportRecordsResponse:
    return ImportRecordsResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            TopicResult(
                topic_id=topic.topic_id,
                partitions=tuple(_result(each, error) for each in topic.partitions),
            )
            for topic in request.topics
        ),
    )


async def _topic(broker: Broker, topic: ImportedTopic, timeout_s: float) -> TopicResult:
    async def import_partition(asked: ImportedPartition) -> PartitionResult:
        partition: Partition | None = None
        error: ApiError | None = None
        try:
            partition = broker.replicas.find(topic.topic_id or NO_TOPIC, asked.partition_index)
            async with asyncio.timeout(timeout_s):
                await _import(broker, partition, asked)
        except ApiError as refusal:
            error = refusal.with_traceback(None)
        except RecordError as damage:
            error = ApiError(ErrorCode.corrupt_message, str(damage))
        except TimeoutError:
            error = ApiError(ErrorCode.request_timed_out, "the in-sync replicas are slow")
        return _result(asked, error, partition)

    partitions = await asyncio.gather(*map(import_partition, topic.partitions))
    return TopicResult(topic_id=topic.topic_id, partitions=tuple(partitions))


async def _import(broker: Broker, partition: Partition, asked: ImportedPartition) -> None:
    log = partition.log
    if partition.is_internal or not log.config.takes_imports:
        raise not_open(log)
    if partition.is_being_truncated:
        raise ApiError(ErrorCode.leader_not_available, "the log is about to begin elsewhere")
    if log.log_start_offset == log.log_end_offset < asked.log_start_offset:
        await _begin_at(broker, partition, asked.log_start_offset)
    leader = partition.leader
    assert leader is not None, "whoever found it has looked"
    leader.validate_in_sync_replicas()
    records = bytearray(asked.records)  # A copy, because the leader epoch is written into it.
    try:
        appended = leader.append_imported(memoryview(records), asked.next_offset)
    except ApiError as refusal:
        if refusal.code is ErrorCode.offset_out_of_range:
            await _all_committed(broker, leader)
        raise
    await _committed(broker, leader, appended.last_offset)


async def _begin_at(broker: Broker, partition: Partition, offset: int) -> None:
    """Returns once the replicas begin there, too; the caller may give up earlier."""
    error = await asyncio.shield(_start_anew(broker, partition, offset))
    if error is not None:
        raise ApiError(ErrorCode.kafka_storage_error, str(error))
    leader = partition.leader
    if leader is None:
        raise ApiError(ErrorCode.not_leader_or_follower)
    followed, waiter = _outcome(broker)
    leader.on_deleted(offset, waiter)
    await _settled(followed)
    if not partition.is_leader:  # No longer, since that was decided.
        raise ApiError(ErrorCode.not_leader_or_follower)


async def _start_anew(broker: Broker, partition: Partition, offset: int) -> StorageError | None:
    """Runs in a thread; meanwhile no role changes."""
    partition.is_being_truncated = True
    try:
        offsets = {partition.log.topic_partition: offset}
        await broker.process.loop.run_in_executor(
            broker.process.executor, broker.logs.start_anew, offsets
        )
    except StorageError as error:
        return error
    finally:
        partition.is_being_truncated = False
        partition.on_started_anew()
        broker.replicas.on_truncated(partition)
    return None


async def _all_committed(broker: Broker, leader: PartitionLeader) -> None:
    """An importer considers the end that it is told done, whoever wrote up to there."""
    log = leader.partition.log
    while log.high_watermark < log.log_end_offset:
        await _committed(broker, leader, log.log_end_offset - 1)


async def _committed(broker: Broker, leader: PartitionLeader, offset: int) -> None:
    if offset >= leader.partition.log.high_watermark:
        committed, waiter = _outcome(broker)
        leader.committed_waiters.add(offset + 1, waiter)
        await _settled(committed)


def _outcome(broker: Broker) -> tuple["asyncio.Future[ApiError | None]", Waiter]:
    outcome: asyncio.Future[ApiError | None] = broker.process.loop.create_future()
    return outcome, lambda error: None if outcome.done() else outcome.set_result(error)


async def _settled(outcome: "asyncio.Future[ApiError | None]") -> None:
    error = await outcome
    if error is not None:
        raise ApiError(error.code, error.message)


def _result(
    asked: ImportedPartition, error: ApiError | None, partition: Partition | None = None
) -> PartitionResult:
    is_led = partition is not None and partition.is_leader
    return PartitionResult(
        partition_index=asked.partition_index,
        error_code=ErrorCode.none if error is None else error.code,
        error_message=None if error is None else error.message,
        log_start_offset=i64(partition.log.log_start_offset if partition and is_led else -1),
        log_end_offset=i64(partition.log.log_end_offset if partition and is_led else -1),
    )
