"""ShareGroupHeartbeat (76): v1.

A member of a share group joins, says what it wants, and learns what to fetch (KIP-932). Partitions
that the group meets for the first time get their state at the share coordinator before the answer.
"""

from dataclasses import replace

from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest
from kio.schema.share_group_heartbeat.v1.response import ShareGroupHeartbeatResponse
from kio.static.primitive import i32

from ottla.handlers.authorization import require
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.group_calls import caller_of, submit
from ottla.handlers.share_state import initialize_share_partitions
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE, milliseconds
from ottla.security.acls import Operation, ResourceType


async def handle(
    broker: Broker, context: RequestContext, request: ShareGroupHeartbeatRequest
) -> ShareGroupHeartbeatResponse:
    require(context, Operation.READ, ResourceType.GROUP, request.group_id)
    for topic in request.subscribed_topic_names or ():
        require(context, Operation.DESCRIBE, ResourceType.TOPIC, topic)
    caller = caller_of(context)
    response = await submit(
        broker,
        request.group_id,
        lambda machine, now_ms: machine.share_group_heartbeat(request, caller, now_ms),
    )
    if response.member_epoch < 0 or not await initialize_share_partitions(broker, request.group_id):
        return response
    # The member keeps its subscription and asks once more, under the epoch that it got.
    again = replace(request, member_epoch=response.member_epoch)
    return await submit(
        broker,
        request.group_id,
        lambda machine, now_ms: machine.share_group_heartbeat(again, caller, now_ms),
    )


def error_response(_: ShareGroupHeartbeatRequest, error: ApiError) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(
        throttle_time=NO_THROTTLE,
        error_code=error.code,
        error_message=error.message,
        member_epoch=i32(0),
        heartbeat_interval=milliseconds(0),
    )
