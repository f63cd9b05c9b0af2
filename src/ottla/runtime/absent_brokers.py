"""Calls absent brokers, so that one that restarts without its disk learns which cluster it is in.

A node that begins a cluster first listens for members of another one, for less than half a second
on loopback (`node.beginning`); so these calls are more frequent than that, without the back-off of
other connections. The controller, or every node while there is none, calls each registered broker
that sends no heartbeats. There is at most one attempt at a time, and a failed one leaves nothing
behind.

A broker that answers is there, and is called less and less often on the same connection, to check
that it still is. When that connection ends, its process may have ended: it is called at once.

The call is a pre-vote with epoch 0, which a node of this cluster rejects without any effect.
"""

import asyncio
import logging
from collections.abc import Callable, Container
from dataclasses import field
from typing import Any, Final, NamedTuple

from ottla.controller.image import MetadataImage
from ottla.network.peers import Peers, PeerUnreachable
from ottla.protocol.addresses import Address
from ottla.protocol.errors import ErrorCode, ProtocolError
from ottla.protocol.lazy_dataclass import dataclass
from ottla.raft.messages import VoteRequest
from ottla.raft.quorum import Identity
from ottla.raft.voters import ReplicaKey
from ottla.runtime.leadership import Leadership
from ottla.runtime.supervisor import Supervisor

logger = logging.getLogger(__name__)

CALL_INTERVAL_S: Final = 0.08
ANSWERED_INTERVAL_MAX_S: Final = 1.0
_LOOK_INTERVAL_S: Final = 0.25  # While no broker is absent.
_ALONE_INTERVAL_S: Final = 1.0  # While there are no other brokers.
_JITTER: Final = 0.25
_TIMEOUT_MS: Final = 500
_PURPOSE: Final = "absent brokers"


class _Answering(NamedTuple):
    """A broker that answered its last call."""

    address: Address
    interval_s: float
    due_s: float  # When it is next called, by the loop's clock.


@dataclass(slots=True, kw_only=True)
class AbsentBrokers:
    identity: Identity
    listener_name: str
    leadership: Leadership
    image: MetadataImage
    connected: Callable[[], Container[int]]  # The brokers whose heartbeats arrive here.
    address_of: Callable[[int], Address | None]
    peers: Peers
    supervisor: Supervisor
    random: Callable[[], float]
    # Those that have not answered yet.
    _called: set[int] = field(init=False, default_factory=set)
    _answering: dict[int, _Answering] = field(init=False, default_factory=dict)
    # Addresses where nodes of another cluster answered.
    _strangers: set[Address] = field(init=False, default_factory=set)

    async def watch(self) -> None:
        """Runs for as long as the node."""
        leadership = self.leadership
        while True:
            if leadership.leader_id is not None and not leadership.is_here:
                self._hang_up(set())
                await asyncio.wait([leadership.changed])
                continue
            others = set(self.image.brokers) - {self.identity.key.id}
            absent = self._absent(others, leadership.is_here)
            self._hang_up(absent)
            for broker_id in filter(self._is_due, absent - self._called):
                self.supervisor.start(f"call broker {broker_id}", self._call(broker_id))
            present_interval_s = _LOOK_INTERVAL_S if others else _ALONE_INTERVAL_S
            interval_s = CALL_INTERVAL_S if absent else present_interval_s
            await asyncio.sleep(interval_s * (1 + _JITTER * self.random()))

    def _absent(self, others: set[int], is_controller: bool) -> set[int]:
        if not is_controller:
            return others
        connected = self.connected()
        return {broker_id for broker_id in others if broker_id not in connected}

    def _hang_up(self, absent: set[int]) -> None:
        """Close the connections to brokers that are no longer absent."""
        for broker_id in self._answering.keys() - absent:
            address = self._answering.pop(broker_id).address
            self.peers.drop(address, _PURPOSE, "is not needed any more")

    def _is_due(self, broker_id: int) -> bool:
        answering = self._answering.get(broker_id)
        return (
            answering is None
            or answering.due_s <= asyncio.get_running_loop().time()
            or not self.peers.is_connected(answering.address, _PURPOSE)
        )

    def _note_answer(self, broker_id: int, address: Address) -> None:
        before = self._answering.get(broker_id)
        interval_s = CALL_INTERVAL_S if before is None else 2 * before.interval_s
        interval_s = min(interval_s, ANSWERED_INTERVAL_MAX_S)
        wait_s = interval_s * (1 + _JITTER * self.random())
        due_s = asyncio.get_running_loop().time() + wait_s
        self._answering[broker_id] = _Answering(address, interval_s, due_s)

    async def _call(self, broker_id: int) -> None:
        from ottla.raft.wire_requests import request_to_wire
        from ottla.raft.wire_responses import response_from_wire

        address = self.address_of(broker_id)
        if address is None:
            return
        entity: Any = request_to_wire(
            VoteRequest(
                cluster_id=self.identity.cluster_id,
                voter=ReplicaKey(broker_id),
                replica=self.identity.key,
                replica_epoch=0,
                last_offset_epoch=0,
                last_offset=0,
                pre_vote=True,
            )
        )
        self._called.add(broker_id)
        try:
            response = await self.peers.call(
                address,
                entity,
                timeout_ms=_TIMEOUT_MS,
                purpose=_PURPOSE,
                at_once=True,
            )
            error_code = response_from_wire(response, self.listener_name).error_code
        except (PeerUnreachable, ProtocolError):
            self._answering.pop(broker_id, None)
            return
        finally:
            self._called.discard(broker_id)
        self._note_answer(broker_id, address)
        if error_code is ErrorCode.inconsistent_cluster_id and address not in self._strangers:
            self._strangers.add(address)
            logger.error("%s, the address of node %d, is of another cluster", address, broker_id)
