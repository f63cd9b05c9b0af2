"""ShareGroupDescribe (77): v1.

The members of share groups and what they fetch (KIP-932).
"""

from asyncio import Future

from kio.schema.share_group_describe.v1.request import ShareGroupDescribeRequest
from kio.schema.share_group_describe.v1.response import (
    DescribedGroup,
    ShareGroupDescribeResponse,
)
from kio.schema.types import GroupId

from ottla.groups.share.describe import describe_missing
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.group_calls import call_each, submit
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE


async def handle(
    broker: Broker, _: RequestContext, request: ShareGroupDescribeRequest
) -> ShareGroupDescribeResponse:
    def begin(group_id: GroupId) -> "Future[tuple[DescribedGroup, ...]]":
        return submit(
            broker, group_id, lambda machine, _: machine.describe_share_groups((group_id,))
        )

    answers = await call_each(
        request.group_ids, begin, lambda group_id, error: (describe_missing(group_id, error),)
    )
    return ShareGroupDescribeResponse(
        throttle_time=NO_THROTTLE, groups=tuple(group for (group,) in answers)
    )


def error_response(
    request: ShareGroupDescribeRequest, error: ApiError
) -> ShareGroupDescribeResponse:
    return ShareGroupDescribeResponse(
        throttle_time=NO_THROTTLE,
        groups=tuple(describe_missing(group_id, error) for group_id in request.group_ids),
    )
