"""OffsetForLeaderEpoch (23): v2-v4.

Where the records of a leader epoch end, so that a consumer that sees a new leader can find out
whether what it has read is still there (KIP-320).

v2  the leader epoch that the client believes in
v3  the replica id
v4  flexible
"""

from collections.abc import Callable, Container

from kio.schema.offset_for_leader_epoch.v4.request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
)
from kio.schema.offset_for_leader_epoch.v4.response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from kio.static.primitive import i32, i64

from ottla.handlers.authorization import DENIED, denied_topics
from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import CLUSTER_NAME, Operation, ResourceType


def handle(
    broker: Broker, context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    denied: Container[str] = ()
    if not context.access.may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        denied = denied_topics(
            context, Operation.DESCRIBE, (topic.topic for topic in request.topics)
        )

    def find(topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
        return _failed(asked, DENIED) if topic in denied else _find(broker, topic, asked)

    return _response(request, find)


def error_response(
    request: OffsetForLeaderEpochRequest, error: ApiError
) -> OffsetForLeaderEpochResponse:
    return _response(request, lambda _, asked: _failed(asked, error))


def _response(
    request: OffsetForLeaderEpochRequest,
    find: Callable[[str, OffsetForLeaderPartition], EpochEndOffset],
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=tuple(find(topic.topic, asked) for asked in topic.partitions),
            )
            for topic in request.topics
        ),
    )


def _find(broker: Broker, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        partition = broker.replicas.find_in_epoch(
            topic, asked.partition, asked.current_leader_epoch
        )
    except ApiError as error:
        return _failed(asked, error)
    log = partition.log
    epoch, end_offset = log.leader_epochs.end_offset_for(asked.leader_epoch, log.log_end_offset)
    return EpochEndOffset(
        error_code=ErrorCode.none,
        partition=asked.partition,
        leader_epoch=i32(epoch),
        end_offset=i64(end_offset),
    )


def _failed(asked: OffsetForLeaderPartition, error: ApiError) -> EpochEndOffset:
    return EpochEndOffset(error_code=error.code, partition=asked.partition)
