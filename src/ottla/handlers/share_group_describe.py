"""ShareGroupDescribe (77): v1.

The members of share groups and what they fetch (KIP-932).
"""

from kio.schema.share_group_describe.v1.request import ShareGroupDescribeRequest
from kio.schema.share_group_describe.v1.response import ShareGroupDescribeResponse

from ottla.groups.share.describe import describe_missing
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.group_descriptions import assigned_topics, describe_each
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE


async def handle(
    broker: Broker, context: RequestContext, request: ShareGroupDescribeRequest
) -> ShareGroupDescribeResponse:
    groups = await describe_each(
        broker,
        context,
        request.group_ids,
        lambda machine, group_id: machine.describe_share_groups((group_id,)),
        failed=describe_missing,
        topics_of=assigned_topics,
        with_operations=request.include_authorized_operations,
    )
    return ShareGroupDescribeResponse(throttle_time=NO_THROTTLE, groups=groups)


def error_response(
    request: ShareGroupDescribeRequest, error: ApiError
) -> ShareGroupDescribeResponse:
    return ShareGroupDescribeResponse(
        throttle_time=NO_THROTTLE,
        groups=tuple(describe_missing(group_id, error) for group_id in request.group_ids),
    )
