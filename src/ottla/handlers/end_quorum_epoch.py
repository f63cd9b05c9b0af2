"""EndQuorumEpoch (54): v0-v1.

The leader of the metadata quorum resigns, and names its preferred successors.

v1  directory ids and endpoints (KIP-853)
"""

from collections.abc import Awaitable

from kio.schema.end_quorum_epoch.v1.request import EndQuorumEpochRequest

from ottla.handlers.broker import Broker, RequestContext


def handle(broker: Broker, _: RequestContext, request: EndQuorumEpochRequest) -> Awaitable[object]:
    return broker.quorum.handle(request)
