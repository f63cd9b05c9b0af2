"""ConsumerGroupHeartbeat (68): v0-v1.

A member of a consumer group joins, sends its subscription and partitions, and gets its assignment
(KIP-848).

v1  subscription by a regular expression; the member chooses its id (KIP-1082)
"""

from collections.abc import Awaitable

from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest
from kio.schema.consumer_group_heartbeat.v1.response import ConsumerGroupHeartbeatResponse

from ottla.handlers.authorization import require
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.group_calls import caller_of
from ottla.security.acls import Operation, ResourceType


def handle(
    broker: Broker, context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | Awaitable[ConsumerGroupHeartbeatResponse]:
    require(context, Operation.READ, ResourceType.GROUP, request.group_id)
    for topic in request.subscribed_topic_names or ():
        require(context, Operation.DESCRIBE, ResourceType.TOPIC, topic)
    caller = caller_of(context)
    return broker.groups.find(request.group_id).call(
        lambda machine, now_ms: machine.consumer_group_heartbeat(request, caller, now_ms)
    )
