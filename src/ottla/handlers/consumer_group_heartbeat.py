"""ConsumerGroupHeartbeat (68): v0-v1.

A member of a consumer group joins, says what it wants and has, and learns what to take (KIP-848).

v1  subscription by a regular expression; the member chooses its id (KIP-1082)
"""

from collections.abc import Awaitable

from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest
from kio.schema.consumer_group_heartbeat.v1.response import ConsumerGroupHeartbeatResponse
from kio.static.primitive import i32

from ottla.handlers.authorization import require
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.group_calls import call, caller_of
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE, milliseconds
from ottla.security.acls import Operation, ResourceType


def handle(
    broker: Broker, context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | Awaitable[ConsumerGroupHeartbeatResponse]:
    require(context, Operation.READ, ResourceType.GROUP, request.group_id)
    for topic in request.subscribed_topic_names or ():
        require(context, Operation.DESCRIBE, ResourceType.TOPIC, topic)
    caller = caller_of(context)
    return call(
        broker,
        request.group_id,
        lambda machine, now_ms: machine.consumer_group_heartbeat(request, caller, now_ms),
    )


def error_response(
    _: ConsumerGroupHeartbeatRequest, error: ApiError
) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        throttle_time=NO_THROTTLE,
        error_code=error.code,
        error_message=error.message,
        member_epoch=i32(0),
        heartbeat_interval=milliseconds(0),
    )
