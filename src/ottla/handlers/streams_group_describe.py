"""StreamsGroupDescribe (89): v0.

The topology, the members and the tasks of streams groups (KIP-1071).
"""

from kio.schema.streams_group_describe.v0.request import StreamsGroupDescribeRequest
from kio.schema.streams_group_describe.v0.response import (
    DescribedGroup,
    StreamsGroupDescribeResponse,
)

from ottla.groups.streams.describe import describe_missing
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.group_descriptions import describe_each, topology_topics
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE


async def handle(
    broker: Broker, context: RequestContext, request: StreamsGroupDescribeRequest
) -> StreamsGroupDescribeResponse:
    groups = await describe_each(
        broker,
        context,
        request.group_ids,
        lambda machine, group_id: machine.describe_streams_groups((group_id,)),
        failed=describe_missing,
        topics_of=_topics_of,
        with_operations=request.include_authorized_operations,
    )
    return StreamsGroupDescribeResponse(throttle_time=NO_THROTTLE, groups=groups)


def _topics_of(group: DescribedGroup) -> set[str]:
    topology = group.topology
    return set() if topology is None else topology_topics(topology.subtopologies or ())


def error_response(
    request: StreamsGroupDescribeRequest, error: ApiError
) -> StreamsGroupDescribeResponse:
    return StreamsGroupDescribeResponse(
        throttle_time=NO_THROTTLE,
        groups=tuple(describe_missing(group_id, error) for group_id in request.group_ids),
    )
