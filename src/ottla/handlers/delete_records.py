"""DeleteRecords (21): v0-v2.

Advances the start of a log; -1 stands for the high watermark. Answered once the logs of all live
replicas start there.

v2  flexible
"""

import asyncio
from collections.abc import Iterable, Iterator
from itertools import islice

from kio.schema.delete_records.v2.request import DeleteRecordsPartition, DeleteRecordsRequest
from kio.schema.delete_records.v2.response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kio.static.primitive import i64

from ottla.handlers.authorization import DENIED, denied_topics
from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.replication.partition_leader import PartitionLeader
from ottla.security.acls import Operation
from ottla.storage.errors import StorageError
from ottla.storage.log import PartitionLog

HIGH_WATERMARK = -1
INVALID_LOW_WATERMARK = i64(-1)

_INTERNAL_TOPIC = (
    ErrorCode.invalid_topic_exception,
    "only the broker deletes records of internal topics",
)


async def handle(
    broker: Broker, context: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse:
    """Runs in a thread, because it removes segments from disk."""
    denied = denied_topics(context, Operation.DELETE, (topic.name for topic in request.topics))
    asked_partitions = list(_asked_partitions(request))
    outcomes = await broker.process.loop.run_in_executor(
        broker.process.executor,
        lambda: [
            DENIED.code if topic in denied else _delete(broker, topic, asked)
            for topic, asked in asked_partitions
        ],
    )
    timeout_s = request.timeout.total_seconds()
    results = await asyncio.gather(
        *(
            _result(broker, outcome, asked, timeout_s)
            for outcome, (_, asked) in zip(outcomes, asked_partitions, strict=True)
        )
    )
    return _response(request, results)


def error_response(request: DeleteRecordsRequest, error: ApiError) -> DeleteRecordsResponse:
    return _response(
        request, [_failed(asked, error.code) for _, asked in _asked_partitions(request)]
    )


def _asked_partitions(
    request: DeleteRecordsRequest,
) -> Iterator[tuple[str, DeleteRecordsPartition]]:
    for topic in request.topics:
        for asked in topic.partitions:
            yield topic.name, asked


def _delete(
    broker: Broker, topic: str, asked: DeleteRecordsPartition
) -> PartitionLeader | ErrorCode:
    try:
        partition = broker.replicas.find(topic, asked.partition_index)
        leader = partition.leader
        if leader is None:  # Since a moment ago: this is a thread.
            raise ApiError(ErrorCode.not_leader_or_follower)
        if partition.is_internal:
            raise ApiError(*_INTERNAL_TOPIC)
        config = partition.log.config
        if config.compact and not config.delete:
            raise ApiError(ErrorCode.policy_violation, f"{topic} is compacted only")
        _delete_before(partition.log, asked.offset)
    except ApiError as error:
        return error.code
    except StorageError:
        return ErrorCode.kafka_storage_error
    return leader


async def _result(
    broker: Broker,
    outcome: PartitionLeader | ErrorCode,
    asked: DeleteRecordsPartition,
    timeout_s: float,
) -> DeleteRecordsPartitionResult:
    if isinstance(outcome, ErrorCode):
        return _failed(asked, outcome)
    leader = outcome
    if leader.partition.leader is not leader:  # The next leader may not have deleted them.
        return _failed(asked, ErrorCode.not_leader_or_follower)
    followed: asyncio.Future[ApiError | None] = broker.process.loop.create_future()
    leader.on_deleted(
        leader.partition.log.log_start_offset,
        lambda error: None if followed.done() else followed.set_result(error),
    )
    try:
        error = await asyncio.wait_for(followed, timeout_s)
    except TimeoutError:
        return _failed(asked, ErrorCode.request_timed_out)
    if error is not None:
        return _failed(asked, error.code)
    await broker.share.partitions.on_records_deleted(leader.partition)
    return DeleteRecordsPartitionResult(
        partition_index=asked.partition_index,
        low_watermark=i64(leader.low_watermark),
        error_code=ErrorCode.none,
    )


def _response(
    request: DeleteRecordsRequest, results: Iterable[DeleteRecordsPartitionResult]
) -> DeleteRecordsResponse:
    """`results` are in request order."""
    rest = iter(results)
    return DeleteRecordsResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            DeleteRecordsTopicResult(
                name=topic.name, partitions=tuple(islice(rest, len(topic.partitions)))
            )
            for topic in request.topics
        ),
    )


def _delete_before(log: PartitionLog, offset: int) -> None:
    if offset == HIGH_WATERMARK:
        offset = log.high_watermark
    if not 0 <= offset <= log.high_watermark:
        raise ApiError(
            ErrorCode.offset_out_of_range,
            f"offset {offset} is not between 0 and the high watermark {log.high_watermark}",
        )
    if offset > log.log_start_offset:
        log.delete_records_before(offset)


def _failed(asked: DeleteRecordsPartition, code: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=asked.partition_index,
        low_watermark=INVALID_LOW_WATERMARK,
        error_code=code,
    )
