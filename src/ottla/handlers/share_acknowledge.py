"""ShareAcknowledge (79): v1-v2.

The outcome of records that a share group consumer received (KIP-932).

v2  locks can be renewed (KIP-1222)
"""

from collections.abc import Iterable, Mapping

from kio.schema.share_acknowledge.v2.request import ShareAcknowledgeRequest
from kio.schema.share_acknowledge.v2.response import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from kio.static.primitive import i32

from ottla.groups.partitions import TopicIdPartition
from ottla.groups.share.sessions import FINAL_EPOCH, INITIAL_EPOCH
from ottla.handlers.authorization import require
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.current_leaders import current_leader, leader_endpoints
from ottla.handlers.share_calls import (
    NO_TOPIC,
    RENEW_SINCE,
    acknowledge,
    acknowledgements_of,
    continued_session,
    session_key,
)
from ottla.protocol import leader_hints
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.leader_hints import NO_LEADER, Leader
from ottla.protocol.times import NO_THROTTLE, milliseconds
from ottla.security.acls import Operation, ResourceType


async def handle(
    broker: Broker, context: RequestContext, request: ShareAcknowledgeRequest
) -> ShareAcknowledgeResponse:
    require(context, Operation.READ, ResourceType.GROUP, request.group_id or "")
    key = session_key(request.group_id, request.member_id)
    if request.share_session_epoch == INITIAL_EPOCH:
        raise ApiError(
            ErrorCode.invalid_share_session_epoch, "a session is opened by ShareFetch only"
        )
    acknowledgements = acknowledgements_of(request)
    continued_session(broker, key, request.share_session_epoch)
    may_renew = request.is_renew_ack and context.api_version >= RENEW_SINCE
    errors = await acknowledge(broker, context, key, acknowledgements, may_renew=may_renew)
    if request.share_session_epoch == FINAL_EPOCH:
        broker.share.partitions.release(*key)
    lock_ms = broker.share.config(key.group_id).record_lock_duration_ms
    leaders = _leaders(broker, errors)
    endpoints = leader_endpoints(
        broker.image, context.listener_name, {leader.leader_id for leader in leaders.values()}
    )
    return _response(request, errors, leaders, endpoints, lock_ms)


def _leaders(
    broker: Broker, errors: Mapping[TopicIdPartition, ApiError]
) -> dict[TopicIdPartition, Leader]:
    found = {
        topic_partition: current_leader(broker.image, *topic_partition, error.code)
        for topic_partition, error in errors.items()
    }
    return {each: leader for each, leader in found.items() if leader is not None}


def _response(
    request: ShareAcknowledgeRequest,
    errors: Mapping[TopicIdPartition, ApiError],
    leaders: Mapping[TopicIdPartition, Leader],
    endpoints: Iterable[leader_hints.NodeEndpoint],
    lock_ms: int,
) -> ShareAcknowledgeResponse:
    def partition(topic_partition: TopicIdPartition) -> PartitionData:
        error = errors.get(topic_partition)
        leader = leaders.get(topic_partition, NO_LEADER)
        return PartitionData(
            partition_index=i32(topic_partition.partition),
            error_code=ErrorCode.none if error is None else error.code,
            error_message=None if error is None else error.message,
            current_leader=LeaderIdAndEpoch(**leader._asdict()),
        )

    return ShareAcknowledgeResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        acquisition_lock_timeout=milliseconds(lock_ms),
        responses=tuple(
            ShareAcknowledgeTopicResponse(
                topic_id=topic.topic_id,
                partitions=tuple(
                    partition(TopicIdPartition(topic.topic_id or NO_TOPIC, each.partition_index))
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        ),
        node_endpoints=tuple(NodeEndpoint(**each._asdict()) for each in endpoints),
    )
