"""RemoveRaftVoter (81): v0.

Takes a voter out of the metadata quorum (KIP-853).
"""

from collections.abc import Awaitable

from kio.schema.remove_raft_voter.v0.request import RemoveRaftVoterRequest

from ottla.handlers.authorization import require_cluster
from ottla.handlers.broker import Broker, RequestContext
from ottla.security.acls import Operation


def handle(
    broker: Broker, context: RequestContext, request: RemoveRaftVoterRequest
) -> Awaitable[object]:
    require_cluster(context, Operation.ALTER)
    return broker.controller.call(request, caller=context.caller())
