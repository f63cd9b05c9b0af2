"""Transports the quorum's messages: requests to other replicas, responses to theirs.

Fetches, which wait at the leader, use a separate connection, so that nothing waits behind them. An
address comes from the voters, or was learned: from the configuration, for the nodes to ask before
any is known, or from the leader, which answered at that address.

The wire entities are imported on demand, since a single node never needs them.
"""

import logging
from asyncio import Future, Task, wait
from collections.abc import Callable
from dataclasses import field
from typing import Any, Final

from ottla.network.peers import PeerRefused, Peers, PeerUnreachable
from ottla.protocol.addresses import Address
from ottla.protocol.errors import ApiError, ErrorCode, ProtocolError
from ottla.protocol.lazy_dataclass import dataclass
from ottla.raft.messages import (
    NOBODY,
    FetchRequest,
    FetchResponse,
    Message,
    Request,
    Response,
)
from ottla.raft.voters import Endpoint
from ottla.runtime.supervisor import Supervisor

logger = logging.getLogger(__name__)

Receive = Callable[[Message], None]  # A response.
# A request without a response, and whether that is because nothing listens at the address.
Fail = Callable[[Message, bool], None]

_FETCHES: Final = "quorum fetch"
_OTHERS: Final = "quorum"


@dataclass(slots=True, kw_only=True, eq=False)
class RaftExchange:
    node_id: int
    listener_name: str
    peers: Peers
    learned: dict[int, Address]  # By node id, or one of `Identity.bootstrap`.
    supervisor: Supervisor
    timeout_ms: int
    _next_correlation_id: int = field(init=False, default=1)
    # For requests received.
    _replies: dict[int, Future[Any]] = field(init=False, default_factory=dict)
    _sending: set[Task[None]] = field(init=False, default_factory=set)
    # Addresses of nodes of another cluster.
    _strangers: set[Address] = field(init=False, default_factory=set)

    # Requests from others.

    def receive(self, request: Request) -> "tuple[Message, Future[Any]]":
        """The message for the core, and the future of the response to it."""
        correlation_id = self._next_correlation_id
        self._next_correlation_id += 1
        reply: Future[Any] = self.supervisor.loop.create_future()
        self._replies[correlation_id] = reply
        return Message(NOBODY, self.node_id, correlation_id, request), reply

    def take_reply(self, response: Message) -> "Future[Any]":
        """To be completed with the message's content, once that has been read from disk."""
        return self._replies.pop(response.correlation_id)

    def fail_replies(self, reason: str) -> None:
        replies, self._replies = self._replies, {}
        for reply in replies.values():
            if not reply.done():
                reply.set_exception(ApiError(ErrorCode.broker_not_available, reason))

    # Requests to others.

    def expect(self, address: Address) -> None:
        """A node that sends requests is up, and can be asked."""
        self.peers.expect(address)

    def address_of(self, node_id: int, endpoints: tuple[Endpoint, ...]) -> Address | None:
        if endpoints:
            return Address(endpoints[0].host, endpoints[0].port)
        return self.learned.get(node_id)

    def send(
        self,
        message: Message,
        request: Request,
        endpoints: tuple[Endpoint, ...],
        on_response: Receive,
        on_failed: Fail,
    ) -> None:
        """One of the two callbacks is called later."""
        address = self.address_of(message.destination, endpoints)
        if address is None:
            self.supervisor.loop.call_soon(on_failed, message, False)
            return
        sending = self.supervisor.start(
            "quorum request", self._send(message, request, address, on_response, on_failed)
        )
        self._sending.add(sending)
        sending.add_done_callback(self._sending.discard)

    async def wait_for_answers(self, timeout_s: float) -> None:
        """Wait for the responses to everything sent so far, up to the timeout."""
        if self._sending:
            await wait(self._sending, timeout=timeout_s)

    async def _send(
        self,
        message: Message,
        request: Request,
        address: Address,
        on_response: Receive,
        on_failed: Fail,
    ) -> None:
        try:
            response = await self._call(request, address)
        except (PeerUnreachable, ProtocolError) as error:
            on_failed(message, isinstance(error, PeerRefused))
            return
        self._learn(response, address)
        self._maybe_warn(response, address)
        on_response(Message(message.destination, self.node_id, message.correlation_id, response))

    async def _call(self, request: Request, address: Address) -> Response:
        from ottla.raft.wire_requests import request_to_wire
        from ottla.raft.wire_responses import response_from_wire

        entity: Any = request_to_wire(request)
        response = await self.peers.call(
            address,
            entity,
            timeout_ms=self.timeout_ms,
            purpose=_FETCHES if isinstance(request, FetchRequest) else _OTHERS,
        )
        return response_from_wire(response, self.listener_name)

    def _maybe_warn(self, response: Response, address: Address) -> None:
        wrong = response.error_code is ErrorCode.inconsistent_cluster_id
        if wrong and address not in self._strangers:
            self._strangers.add(address)
            logger.error("%s is a node of another cluster; ignoring it", address)

    def _learn(self, response: Response, address: Address) -> None:
        """Only the leader answers a fetch without an error."""
        if isinstance(response, FetchResponse) and response.error_code is ErrorCode.none:
            self.learned[response.leader_id] = address
