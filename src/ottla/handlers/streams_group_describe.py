"""StreamsGroupDescribe (89): v0.

The topology, the members and the tasks of streams groups (KIP-1071).
"""

from asyncio import Future

from kio.schema.streams_group_describe.v0.request import StreamsGroupDescribeRequest
from kio.schema.streams_group_describe.v0.response import (
    DescribedGroup,
    StreamsGroupDescribeResponse,
)
from kio.schema.types import GroupId

from ottla.groups.streams.describe import describe_missing
from ottla.handlers.authorization import (
    UNDESCRIBABLE_TOPICS,
    denied_topics,
    require,
    with_operations,
)
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.group_calls import call_each, submit
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation, ResourceType


async def handle(
    broker: Broker, context: RequestContext, request: StreamsGroupDescribeRequest
) -> StreamsGroupDescribeResponse:
    def begin(group_id: GroupId) -> "Future[tuple[DescribedGroup, ...]]":
        require(context, Operation.DESCRIBE, ResourceType.GROUP, group_id)
        return submit(
            broker, group_id, lambda machine, _: machine.describe_streams_groups((group_id,))
        )

    answers = await call_each(
        request.group_ids, begin, lambda group_id, error: (describe_missing(group_id, error),)
    )
    return StreamsGroupDescribeResponse(
        throttle_time=NO_THROTTLE,
        groups=tuple(
            with_operations(
                context, _shown(context, group), asked=request.include_authorized_operations
            )
            for (group,) in answers
        ),
    )


def _shown(context: RequestContext, group: DescribedGroup) -> DescribedGroup:
    parts = group.topology.subtopologies if group.topology is not None else None
    topics = {
        name
        for part in parts or ()
        for name in (
            *part.source_topics,
            *part.repartition_sink_topics,
            *(topic.name for topic in part.repartition_source_topics),
            *(topic.name for topic in part.state_changelog_topics),
        )
    }
    if denied_topics(context, Operation.DESCRIBE, topics):
        return describe_missing(group.group_id, UNDESCRIBABLE_TOPICS)
    return group


def error_response(
    request: StreamsGroupDescribeRequest, error: ApiError
) -> StreamsGroupDescribeResponse:
    return StreamsGroupDescribeResponse(
        throttle_time=NO_THROTTLE,
        groups=tuple(describe_missing(group_id, error) for group_id in request.group_ids),
    )
