"""Requests about the quorum, from the wire to the core and back.

The wire entities are imported on demand, since a single node rarely needs them.
"""

from collections.abc import Callable
from typing import Any, Final

from ottla.protocol.errors import ApiError, ErrorCode, ProtocolError
from ottla.protocol.lazy_dataclass import dataclass
from ottla.raft.messages import AddRaftVoterRequest, FetchRequest, Request
from ottla.raft.states import Leader
from ottla.runtime.claims import Claim, claim_in
from ottla.runtime.raft_driver import RaftDriver

_DESCRIBE_QUORUM_KEY: Final = 55

_ADD_REQUEST_TIMEOUTS: Final = 15  # A new voter has this many request timeouts to catch up.


@dataclass(slots=True, eq=False)
class QuorumRequests:
    driver: RaftDriver
    request_timeout_ms: int
    quorum_size: int  # A node that adds itself becomes a voter only while there are too few.
    on_claim: Callable[[Claim], object]

    async def handle(self, request: object) -> object:
        """The response to another replica's request. ApiError if it is not accepted."""
        from ottla.raft.wire_requests import request_from_wire
        from ottla.raft.wire_responses import response_to_wire

        try:
            message = request_from_wire(request)
        except ProtocolError as error:
            raise ApiError(ErrorCode.invalid_request, str(error)) from error
        identity = self.driver.identity
        claim = claim_in(message, identity.key.id, identity.cluster_id)
        if claim is not None:
            self.on_claim(claim)
        self._validate_needed(message)
        return response_to_wire(await self.driver.handle(self._bounded(message)))

    async def call(self, request: Any) -> Any:
        """One of `controller.operations.QUORUM_KEYS`. ApiError NOT_CONTROLLER unless it leads."""
        core = self.driver.core
        if core is None or not isinstance(core.state, Leader):
            raise ApiError(ErrorCode.not_controller, "another node leads the quorum")
        if request.__api_key__ == _DESCRIBE_QUORUM_KEY:
            from ottla.runtime.quorum_description import describe_quorum

            return describe_quorum(self.driver, core, core.state, request)
        return await self.handle(request)

    def _validate_needed(self, request: Request) -> None:
        core = self.driver.core
        if (
            isinstance(request, AddRaftVoterRequest)
            and not request.ack_when_committed  # The mark of a node that adds itself (KIP-1186).
            and core is not None
            and len(core.voters.latest) >= self.quorum_size
        ):
            raise ApiError(ErrorCode.invalid_request, "the quorum has all the voters that it needs")

    def _bounded(self, request: Request) -> Request:
        """Bound how long a request may make the leader wait."""
        if isinstance(request, AddRaftVoterRequest):
            longest_ms = _ADD_REQUEST_TIMEOUTS * self.request_timeout_ms
            return request._replace(timeout_ms=min(request.timeout_ms, longest_ms))
        if isinstance(request, FetchRequest):
            longest_ms = self.request_timeout_ms
            return request._replace(max_wait_ms=min(request.max_wait_ms, longest_ms))
        return request
