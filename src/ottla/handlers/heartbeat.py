"""Heartbeat (12): v0-v4.

Keeps a member of a classic group alive. A coordinator that is still loading does not know its
members yet and succeeds, as in Kafka: some clients give up on any unexpected error.

v1  throttle time in the response
v3  group instance id (KIP-345)
v4  flexible
"""

from collections.abc import Awaitable

from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.heartbeat.v4.response import HeartbeatResponse

from ottla.handlers.authorization import require
from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation, ResourceType


def handle(
    broker: Broker, context: RequestContext, request: HeartbeatRequest
) -> HeartbeatResponse | Awaitable[HeartbeatResponse]:
    require(context, Operation.READ, ResourceType.GROUP, request.group_id)
    try:
        return broker.groups.find(request.group_id).call(
            lambda machine, now_ms: machine.heartbeat(request, now_ms)
        )
    except ApiError as error:
        if error.code is not ErrorCode.coordinator_load_in_progress:
            raise
        return HeartbeatResponse(throttle_time=NO_THROTTLE, error_code=ErrorCode.none)
