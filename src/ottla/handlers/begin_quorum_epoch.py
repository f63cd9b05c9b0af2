"""BeginQuorumEpoch (53): v0-v1.

The leader of the metadata quorum announces itself to a voter that does not fetch.

v1  directory ids and endpoints (KIP-853)
"""

from collections.abc import Awaitable

from kio.schema.begin_quorum_epoch.v1.request import BeginQuorumEpochRequest

from ottla.handlers.broker import Broker, RequestContext


def handle(
    broker: Broker, _: RequestContext, request: BeginQuorumEpochRequest
) -> Awaitable[object]:
    return broker.quorum.handle(request)
