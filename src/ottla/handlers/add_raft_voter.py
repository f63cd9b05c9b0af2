"""AddRaftVoter (80): v0-v1.

Turns a node that follows the metadata log into a voter of its quorum (KIP-853).

v1  an answer before the change is committed, on request (KIP-1186)
"""

from collections.abc import Awaitable

from kio.schema.add_raft_voter.v1.request import AddRaftVoterRequest

from ottla.handlers.authorization import require_cluster
from ottla.handlers.broker import Broker, RequestContext
from ottla.security.acls import Operation


def handle(
    broker: Broker, context: RequestContext, request: AddRaftVoterRequest
) -> Awaitable[object]:
    require_cluster(context, Operation.ALTER)
    return broker.controller.call(request, caller=context.caller())
