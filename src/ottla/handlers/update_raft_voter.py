"""UpdateRaftVoter (82): v0.

A voter tells the leader of the metadata quorum its address and versions (KIP-853).
"""

from collections.abc import Awaitable

from kio.schema.update_raft_voter.v0.request import UpdateRaftVoterRequest
from kio.schema.update_raft_voter.v0.response import CurrentLeader, UpdateRaftVoterResponse
from kio.static.primitive import i32

from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE


def handle(broker: Broker, _: RequestContext, request: UpdateRaftVoterRequest) -> Awaitable[object]:
    return broker.quorum.handle(request)


def error_response(_: UpdateRaftVoterRequest, error: ApiError) -> UpdateRaftVoterResponse:
    return UpdateRaftVoterResponse(
        throttle_time=NO_THROTTLE,
        error_code=error.code,
        current_leader=CurrentLeader(host="", port=i32(0)),
    )
