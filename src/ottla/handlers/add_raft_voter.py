"""AddRaftVoter (80): v0-v1.

Makes a node that follows the metadata log a voter of its quorum (KIP-853).

v1  an answer before the change is committed, on request (KIP-1186)
"""

from collections.abc import Awaitable

from kio.schema.add_raft_voter.v1.request import AddRaftVoterRequest
from kio.schema.add_raft_voter.v1.response import AddRaftVoterResponse

from ottla.handlers.authorization import require_cluster
from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation


def handle(
    broker: Broker, context: RequestContext, request: AddRaftVoterRequest
) -> Awaitable[object]:
    require_cluster(context, Operation.ALTER)
    return broker.controller.call(request, caller=context.caller())


def error_response(_: AddRaftVoterRequest, error: ApiError) -> AddRaftVoterResponse:
    return AddRaftVoterResponse(
        throttle_time=NO_THROTTLE, error_code=error.code, error_message=error.message
    )
