"""LeaveGroup (13): v0-v5.

Members leave a classic group; the others share their partitions.

v1  throttle time in the response
v3  several members at once, also by group instance id (KIP-345)
v4  flexible
v5  the reason why (KIP-800)
"""

from collections.abc import Awaitable

from kio.schema.leave_group.v5.request import LeaveGroupRequest
from kio.schema.leave_group.v5.response import LeaveGroupResponse

from ottla.handlers.authorization import require
from ottla.handlers.broker import Broker, RequestContext
from ottla.security.acls import Operation, ResourceType


def handle(
    broker: Broker, context: RequestContext, request: LeaveGroupRequest
) -> LeaveGroupResponse | Awaitable[LeaveGroupResponse]:
    require(context, Operation.READ, ResourceType.GROUP, request.group_id)
    return broker.groups.find(request.group_id).call(
        lambda machine, now_ms: machine.leave_group(request, now_ms)
    )
