"""ShareAcknowledge (79): v1-v2.

The outcome of records that a share group consumer received (KIP-932).

v2  locks can be renewed (KIP-1222)
"""

from collections.abc import Mapping

from kio.schema.share_acknowledge.v2.request import ShareAcknowledgeRequest
from kio.schema.share_acknowledge.v2.response import (
    LeaderIdAndEpoch,
    PartitionData,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from kio.static.primitive import i32

from ottla.groups.partitions import TopicIdPartition
from ottla.groups.share.sessions import FINAL_EPOCH, INITIAL_EPOCH
from ottla.handlers.authorization import require
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.refusals import refuse_with
from ottla.handlers.share_calls import (
    NO_TOPIC,
    RENEW_SINCE,
    acknowledge,
    acknowledgements_of,
    continued_session,
    session_key,
)
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE, milliseconds
from ottla.security.acls import Operation, ResourceType

_UNKNOWN_LEADER = LeaderIdAndEpoch(leader_id=i32(-1), leader_epoch=i32(-1))


async def handle(
    broker: Broker, context: RequestContext, request: ShareAcknowledgeRequest
) -> ShareAcknowledgeResponse:
    require(context, Operation.READ, ResourceType.GROUP, request.group_id or "")
    key = session_key(request.group_id, request.member_id)
    if request.share_session_epoch == INITIAL_EPOCH:
        raise ApiError(
            ErrorCode.invalid_share_session_epoch, "a session is opened by ShareFetch only"
        )
    acknowledgements = {
        TopicIdPartition(topic.topic_id or NO_TOPIC, partition.partition_index): (
            acknowledgements_of(partition.acknowledgement_batches)
        )
        for topic in request.topics
        for partition in topic.partitions
    }
    continued_session(broker, key, request.share_session_epoch)
    may_renew = request.is_renew_ack and context.api_version >= RENEW_SINCE
    errors = await acknowledge(broker, context, key, acknowledgements, may_renew=may_renew)
    if request.share_session_epoch == FINAL_EPOCH:
        broker.share.partitions.release(*key)
    lock_ms = broker.share.config(key.group_id).record_lock_duration_ms
    return _response(request, errors, lock_ms)


error_response = refuse_with(ShareAcknowledgeResponse)


def _response(
    request: ShareAcknowledgeRequest, errors: Mapping[TopicIdPartition, ApiError], lock_ms: int
) -> ShareAcknowledgeResponse:
    return ShareAcknowledgeResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        acquisition_lock_timeout=milliseconds(lock_ms),
        responses=tuple(
            ShareAcknowledgeTopicResponse(
                topic_id=topic.topic_id,
                partitions=tuple(
                    _partition(
                        partition.partition_index,
                        errors.get(
                            TopicIdPartition(topic.topic_id or NO_TOPIC, partition.partition_index)
                        ),
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
        node_endpoints=(),
    )


def _partition(index: i32, error: ApiError | None) -> PartitionData:
    return PartitionData(
        partition_index=index,
        error_code=ErrorCode.none if error is None else error.code,
        error_message=None if error is None else error.message,
        current_leader=_UNKNOWN_LEADER,
    )
