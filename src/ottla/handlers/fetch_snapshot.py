"""FetchSnapshot (59): v0-v1.

A replica whose log ends before the leader's starts fetches a snapshot in parts (KIP-630).

v1  directory ids and endpoints (KIP-853)
"""

from collections.abc import Awaitable

from kio.schema.fetch_snapshot.v1.request import FetchSnapshotRequest

from ottla.handlers.broker import Broker, RequestContext


def handle(broker: Broker, _: RequestContext, request: FetchSnapshotRequest) -> Awaitable[object]:
    return broker.quorum.handle(request)
