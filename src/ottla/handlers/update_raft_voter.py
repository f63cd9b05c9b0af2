"""UpdateRaftVoter (82): v0.

A voter tells the leader of the metadata quorum its address and versions (KIP-853).
"""

from collections.abc import Awaitable

from kio.schema.update_raft_voter.v0.request import UpdateRaftVoterRequest

from ottla.handlers.broker import Broker, RequestContext


def handle(broker: Broker, _: RequestContext, request: UpdateRaftVoterRequest) -> Awaitable[object]:
    return broker.quorum.handle(request)
