"""Requests about the quorum, from the wire to the core and back.

The entities of the wire are imported when they are needed, which a single node rarely does.
"""

from typing import Any, Final

from ottla.protocol.errors import ApiError, ErrorCode, ProtocolError
from ottla.raft.messages import AddRaftVoterRequest, FetchRequest, Request
from ottla.raft.states import Leader
from ottla.runtime.raft_driver import RaftDriver

_ADD_RAFT_VOTER_KEY: Final = 80
_DESCRIBE_QUORUM_KEY: Final = 55
_REMOVE_RAFT_VOTER_KEY: Final = 81
# Any node takes them; the leader answers.
FORWARDED_KEYS: Final = (_ADD_RAFT_VOTER_KEY, _DESCRIBE_QUORUM_KEY, _REMOVE_RAFT_VOTER_KEY)

_ADD_REQUEST_TIMEOUTS: Final = 15  # So many times may a new voter take to catch up.


class QuorumRequests:
    def __init__(self, driver: RaftDriver, request_timeout_ms: int) -> None:
        self._driver = driver
        self._request_timeout_ms = request_timeout_ms

    async def handle(self, request: object) -> object:
        """The response to a request of another replica. ApiError when it cannot be taken."""
        from ottla.raft.wire_requests import request_from_wire
        from ottla.raft.wire_responses import response_to_wire

        try:
            message = request_from_wire(request)
        except ProtocolError as error:
            raise ApiError(ErrorCode.invalid_request, str(error)) from error
        return response_to_wire(await self._driver.handle(self._bounded(message)))

    async def call(self, request: Any) -> Any:
        """One of FORWARDED_KEYS, on the node that leads; elsewhere ApiError NOT_CONTROLLER."""
        core = self._driver.core
        if core is None or not isinstance(core.state, Leader):
            raise ApiError(ErrorCode.not_controller, "another node leads the quorum")
        if request.__api_key__ == _DESCRIBE_QUORUM_KEY:
            from ottla.runtime.quorum_description import describe_quorum

            return describe_quorum(self._driver, core, core.state, request)
        return await self.handle(request)

    def _bounded(self, request: Request) -> Request:
        """Nobody may make the leader wait for as long as they like."""
        if isinstance(request, AddRaftVoterRequest):
            longest_ms = _ADD_REQUEST_TIMEOUTS * self._request_timeout_ms
            return request._replace(timeout_ms=min(request.timeout_ms, longest_ms))
        if isinstance(request, FetchRequest):
            longest_ms = self._request_timeout_ms
            return request._replace(max_wait_ms=min(request.max_wait_ms, longest_ms))
        return request
