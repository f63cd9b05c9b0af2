"""ShareGroupHeartbeat (76): v1.

A member of a share group joins, sends its subscription, and gets its assignment (KIP-932).
Partitions new to the group get their state at the share coordinator before the response.
"""

from dataclasses import replace

from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest
from kio.schema.share_group_heartbeat.v1.response import ShareGroupHeartbeatResponse

from ottla.handlers.authorization import require
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.group_calls import caller_of
from ottla.handlers.share_state import initialize_share_partitions
from ottla.security.acls import Operation, ResourceType


async def handle(
    broker: Broker, context: RequestContext, request: ShareGroupHeartbeatRequest
) -> ShareGroupHeartbeatResponse:
    require(context, Operation.READ, ResourceType.GROUP, request.group_id)
    for topic in request.subscribed_topic_names or ():
        require(context, Operation.DESCRIBE, ResourceType.TOPIC, topic)
    caller = caller_of(context)
    response = await broker.groups.find(request.group_id).submit(
        lambda machine, now_ms: machine.share_group_heartbeat(request, caller, now_ms)
    )
    if response.member_epoch < 0 or not await initialize_share_partitions(broker, request.group_id):
        return response
    # The member keeps its subscription and asks again, with its new epoch.
    again = replace(request, member_epoch=response.member_epoch)
    return await broker.groups.find(request.group_id).submit(
        lambda machine, now_ms: machine.share_group_heartbeat(again, caller, now_ms)
    )
