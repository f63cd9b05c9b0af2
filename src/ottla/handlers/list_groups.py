"""ListGroups (16): v0-v5.

The groups that this broker coordinates; clients ask every broker.

v1  throttle time in the response
v3  flexible
v4  a filter by state (KIP-518)
v5  a filter by type (KIP-848)
"""

import asyncio

from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.list_groups.v5.response import ListGroupsResponse

from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import CLUSTER_NAME, Operation, ResourceType


async def handle(
    broker: Broker, context: RequestContext, request: ListGroupsRequest
) -> ListGroupsResponse:
    """All groups if the client may describe the cluster, else those that it may describe."""
    may = context.access.may
    all_groups = may(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
    listings = await asyncio.gather(
        *(
            runtime.submit(lambda machine, _: machine.list_groups(request))
            for runtime in broker.groups.all()
        )
    )
    return ListGroupsResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        groups=tuple(
            group
            for listing in listings
            for group in listing
            if all_groups or may(Operation.DESCRIBE, ResourceType.GROUP, group.group_id)
        ),
    )
