"""DescribeGroups (15): v0-v6.

The state and the members of classic groups.

v1  throttle time in the response
v3  authorized operations
v4  group instance ids (KIP-345)
v5  flexible
v6  a group that is not there is an error, with a message (KIP-1043)
"""

from kio.schema.describe_groups.v6.request import DescribeGroupsRequest
from kio.schema.describe_groups.v6.response import DescribedGroup, DescribeGroupsResponse
from kio.schema.types import GroupId

from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.group_calls import caller_of
from ottla.handlers.group_descriptions import describe_each
from ottla.handlers.refusals import refused
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE


async def handle(
    broker: Broker, context: RequestContext, request: DescribeGroupsRequest
) -> DescribeGroupsResponse:
    caller = caller_of(context)
    groups = await describe_each(
        broker,
        context,
        request.groups,
        lambda machine, group_id: machine.describe_groups((group_id,), caller),
        failed=_failed,
        topics_of=lambda _: (),
        with_operations=request.include_authorized_operations,
    )
    return DescribeGroupsResponse(throttle_time=NO_THROTTLE, groups=groups)


def error_response(request: DescribeGroupsRequest, error: ApiError) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        throttle_time=NO_THROTTLE,
        groups=tuple(_failed(group_id, error) for group_id in request.groups),
    )


def _failed(group_id: GroupId, error: ApiError) -> DescribedGroup:
    return refused(DescribedGroup, error, group_id=group_id)
