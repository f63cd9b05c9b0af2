"""DeleteGroups (42): v0-v2.

Removes groups that have no members, with their offsets, or the state of a share group.

v1  throttle time in the response
v2  flexible
"""

import asyncio
from asyncio import Future

from kio.schema.delete_groups.v2.request import DeleteGroupsRequest
from kio.schema.delete_groups.v2.response import DeletableGroupResult, DeleteGroupsResponse
from kio.schema.types import GroupId

from ottla.handlers.authorization import require
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.group_calls import call_each
from ottla.handlers.share_state import remove_share_offsets
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation, ResourceType


async def handle(
    broker: Broker, context: RequestContext, request: DeleteGroupsRequest
) -> DeleteGroupsResponse:
    def begin(group_id: GroupId) -> "Future[tuple[DeletableGroupResult, ...]]":
        require(context, Operation.DELETE, ResourceType.GROUP, group_id)
        return asyncio.ensure_future(_delete(broker, group_id))

    answers = await call_each(
        request.groups_names, begin, lambda group_id, error: (_failed(group_id, error),)
    )
    return DeleteGroupsResponse(
        throttle_time=NO_THROTTLE, results=tuple(result for (result,) in answers)
    )


async def _delete(broker: Broker, group_id: GroupId) -> tuple[DeletableGroupResult, ...]:
    machine = broker.groups.find(group_id).machine
    if machine.has_share_group(group_id):
        partitions = machine.share_partitions.with_state(group_id)
        await remove_share_offsets(broker, group_id, partitions)
    return await broker.groups.find(group_id).submit(
        lambda machine, _: machine.delete_groups((group_id,))
    )


def error_response(request: DeleteGroupsRequest, error: ApiError) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        throttle_time=NO_THROTTLE,
        results=tuple(_failed(group_id, error) for group_id in request.groups_names),
    )


def _failed(group_id: GroupId, error: ApiError) -> DeletableGroupResult:
    return DeletableGroupResult(group_id=group_id, error_code=error.code)
