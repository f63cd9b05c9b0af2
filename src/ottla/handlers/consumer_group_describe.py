"""ConsumerGroupDescribe (69): v0-v1.

The state, the members and the assignments of consumer groups (KIP-848).

v1  the type of each member (KIP-1099)
"""

from kio.schema.consumer_group_describe.v1.request import ConsumerGroupDescribeRequest
from kio.schema.consumer_group_describe.v1.response import ConsumerGroupDescribeResponse

from ottla.groups.consumer.describe import describe_missing
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.group_descriptions import assigned_topics, describe_each
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE


async def handle(
    broker: Broker, context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    groups = await describe_each(
        broker,
        context,
        request.group_ids,
        lambda machine, group_id: machine.describe_consumer_groups((group_id,)),
        failed=describe_missing,
        topics_of=assigned_topics,
        with_operations=request.include_authorized_operations,
    )
    return ConsumerGroupDescribeResponse(throttle_time=NO_THROTTLE, groups=groups)


def error_response(
    request: ConsumerGroupDescribeRequest, error: ApiError
) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(
        throttle_time=NO_THROTTLE,
        groups=tuple(describe_missing(group_id, error) for group_id in request.group_ids),
    )
