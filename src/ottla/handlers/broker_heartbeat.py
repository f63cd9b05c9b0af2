"""BrokerHeartbeat (63): v0-v2.

A broker reports that it is alive, how far it has read the metadata and whether it wants to stop.

v1  log directories that failed (KIP-858)
v2  log directories that take no new replicas (ignored; the controller reads the config)
"""

from collections.abc import Awaitable

from kio.schema.broker_heartbeat.v2.request import BrokerHeartbeatRequest
from kio.schema.broker_heartbeat.v2.response import BrokerHeartbeatResponse

from ottla.handlers.broker import Broker, RequestContext


def handle(
    broker: Broker, _: RequestContext, request: BrokerHeartbeatRequest
) -> Awaitable[BrokerHeartbeatResponse]:
    return broker.controller.call(request)
