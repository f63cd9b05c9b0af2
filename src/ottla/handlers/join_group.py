"""JoinGroup (11): v0-v9.

A member joins or rejoins a classic group; the response waits for the other members.

v1  a rebalance timeout of its own
v4  a new member is told its id first and joins with it (KIP-394)
v5  group instance id (KIP-345)
v6  flexible
v7  the protocol type in the response (KIP-559)
v8  the reason why (KIP-800)
v9  the leader may be told to skip the assignment (KIP-814)
"""

from collections.abc import Awaitable

from kio.schema.join_group.v9.request import JoinGroupRequest
from kio.schema.join_group.v9.response import JoinGroupResponse

from ottla.handlers.authorization import require
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.group_calls import caller_of
from ottla.handlers.refusals import refused
from ottla.protocol.errors import ApiError
from ottla.security.acls import Operation, ResourceType


def handle(
    broker: Broker, context: RequestContext, request: JoinGroupRequest
) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
    require(context, Operation.READ, ResourceType.GROUP, request.group_id)
    caller = caller_of(context)
    return broker.groups.find(request.group_id).call(
        lambda machine, now_ms: machine.join_group(request, caller, now_ms)
    )


def error_response(request: JoinGroupRequest, error: ApiError) -> JoinGroupResponse:
    return refused(JoinGroupResponse, error, member_id=request.member_id)
