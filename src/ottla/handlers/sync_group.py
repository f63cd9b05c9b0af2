"""SyncGroup (14): v0-v5.

The leader of a classic group sends the assignment; every member waits here for its part.

v1  throttle time in the response
v3  group instance id (KIP-345)
v4  flexible
v5  the protocol type and name, in request and response (KIP-559)
"""

from collections.abc import Awaitable

from kio.schema.sync_group.v5.request import SyncGroupRequest
from kio.schema.sync_group.v5.response import SyncGroupResponse

from ottla.handlers.authorization import require
from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.security.acls import Operation, ResourceType

_PROTOCOL_SINCE = 5


def handle(
    broker: Broker, context: RequestContext, request: SyncGroupRequest
) -> SyncGroupResponse | Awaitable[SyncGroupResponse]:
    require(context, Operation.READ, ResourceType.GROUP, request.group_id)
    unsaid = request.protocol_type is None or request.protocol_name is None
    if unsaid and context.api_version >= _PROTOCOL_SINCE:
        raise ApiError(
            ErrorCode.inconsistent_group_protocol,
            "the protocol is not named",
        )
    return broker.groups.find(request.group_id).call(
        lambda machine, now_ms: machine.sync_group(request, now_ms)
    )
