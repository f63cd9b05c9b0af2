"""ConsumerGroupDescribe (69): v0-v1.

The state, the members and the assignments of consumer groups (KIP-848).

v1  the type of each member (KIP-1099)
"""

from asyncio import Future

from kio.schema.consumer_group_describe.v1.request import ConsumerGroupDescribeRequest
from kio.schema.consumer_group_describe.v1.response import (
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from kio.schema.types import GroupId

from ottla.groups.consumer.describe import describe_missing
from ottla.handlers.authorization import (
    UNDESCRIBABLE_TOPICS,
    may_describe_assignments,
    require,
    with_operations,
)
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.group_calls import call_each, submit
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation, ResourceType


async def handle(
    broker: Broker, context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    def begin(group_id: GroupId) -> "Future[tuple[DescribedGroup, ...]]":
        require(context, Operation.DESCRIBE, ResourceType.GROUP, group_id)
        return submit(
            broker, group_id, lambda machine, _: machine.describe_consumer_groups((group_id,))
        )

    answers = await call_each(
        request.group_ids, begin, lambda group_id, error: (describe_missing(group_id, error),)
    )
    return ConsumerGroupDescribeResponse(
        throttle_time=NO_THROTTLE,
        groups=tuple(
            with_operations(
                context, _shown(context, group), asked=request.include_authorized_operations
            )
            for (group,) in answers
        ),
    )


def _shown(context: RequestContext, group: DescribedGroup) -> DescribedGroup:
    if may_describe_assignments(context, group.members):
        return group
    return describe_missing(group.group_id, UNDESCRIBABLE_TOPICS)


def error_response(
    request: ConsumerGroupDescribeRequest, error: ApiError
) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(
        throttle_time=NO_THROTTLE,
        groups=tuple(describe_missing(group_id, error) for group_id in request.group_ids),
    )
