"""DescribeGroups (15): v0-v6.

The state and the members of classic groups.

v1  throttle time in the response
v3  authorized operations (they are unknown: there is no authorizer)
v4  group instance ids (KIP-345)
v5  flexible
v6  a group that is not there is an error, with a message (KIP-1043)
"""

from asyncio import Future

from kio.schema.describe_groups.v6.request import DescribeGroupsRequest
from kio.schema.describe_groups.v6.response import DescribedGroup, DescribeGroupsResponse
from kio.schema.types import GroupId

from ottla.handlers.authorization import require, with_operations
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.group_calls import call_each, caller_of, submit
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation, ResourceType


async def handle(
    broker: Broker, context: RequestContext, request: DescribeGroupsRequest
) -> DescribeGroupsResponse:
    caller = caller_of(context)

    def begin(group_id: GroupId) -> "Future[tuple[DescribedGroup, ...]]":
        require(context, Operation.DESCRIBE, ResourceType.GROUP, group_id)
        return submit(
            broker, group_id, lambda machine, _: machine.describe_groups((group_id,), caller)
        )

    answers = await call_each(
        request.groups, begin, lambda group_id, error: (_failed(group_id, error),)
    )
    return DescribeGroupsResponse(
        throttle_time=NO_THROTTLE,
        groups=tuple(
            with_operations(context, group, asked=request.include_authorized_operations)
            for (group,) in answers
        ),
    )


def error_response(request: DescribeGroupsRequest, error: ApiError) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        throttle_time=NO_THROTTLE,
        groups=tuple(_failed(group_id, error) for group_id in request.groups),
    )


def _failed(group_id: GroupId, error: ApiError) -> DescribedGroup:
    return DescribedGroup(
        error_code=error.code,
        error_message=error.message,
        group_id=group_id,
        group_state="",
        protocol_type="",
        protocol_data="",
        members=(),
    )
