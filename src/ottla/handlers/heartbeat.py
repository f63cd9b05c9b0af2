"""Heartbeat (12): v0-v4.

Keeps a member of a classic group alive.

v1  throttle time in the response
v3  group instance id (KIP-345)
v4  flexible
"""

from collections.abc import Awaitable

from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.heartbeat.v4.response import HeartbeatResponse

from ottla.handlers.authorization import require
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.group_calls import call
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation, ResourceType


def handle(
    broker: Broker, context: RequestContext, request: HeartbeatRequest
) -> HeartbeatResponse | Awaitable[HeartbeatResponse]:
    require(context, Operation.READ, ResourceType.GROUP, request.group_id)
    return call(
        broker, request.group_id, lambda machine, now_ms: machine.heartbeat(request, now_ms)
    )


def error_response(_: HeartbeatRequest, error: ApiError) -> HeartbeatResponse:
    return HeartbeatResponse(throttle_time=NO_THROTTLE, error_code=error.code)
