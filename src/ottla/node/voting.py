"""Decides whether this node votes in the metadata quorum.

The first nodes of a cluster become voters by themselves, until there are `quorum.size` of them; so
do later ones when voters were removed or are being drained, and those that spread the voters over
more racks. A voter whose address changed informs the leader. A node with a replaced disk replaces
its former self as a voter.
"""

import asyncio
import logging
from random import Random
from typing import Any, Final

from kio.schema.types import BrokerId

from ottla.controller.image import MetadataImage
from ottla.controller.partitions import is_cordoned
from ottla.network.peers import Peers, PeerUnreachable
from ottla.node.quorum import MetadataQuorum
from ottla.node.voter_choice import Candidate, should_vote, surplus_voter
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.raft.messages import (
    AddRaftVoterRequest,
    RemoveRaftVoterRequest,
    Request,
    UpdateRaftVoterRequest,
)
from ottla.raft.node import RaftNode
from ottla.raft.voters import KRAFT_VERSION_MAX, Voter, VoterSet
from ottla.runtime.backoff import Backoff

logger = logging.getLogger(__name__)

_RETRY_S: Final = 0.1
_RETRY_MAX_S: Final = 10.0
_WATCH_S: Final = 1.0
_CALL_TIMEOUT_MS: Final = 10_000

# Errors that come with any change of voters or leaders; the next round retries.
_PASSING: Final = (
    ErrorCode.request_timed_out,
    ErrorCode.not_controller,
    ErrorCode.not_leader_or_follower,
    ErrorCode.fenced_leader_epoch,
    ErrorCode.unknown_leader_epoch,
)


class Voting:
    def __init__(
        self,
        quorum: MetadataQuorum,
        peers: Peers,
        quorum_size: int,
        image: MetadataImage,
        random: Random,
    ) -> None:
        self._quorum = quorum
        self._peers = peers
        self._quorum_size = quorum_size
        self._image = image
        self._identity = quorum.driver.identity
        self._backoff = Backoff(_RETRY_S, _RETRY_MAX_S, random)

    async def watch(self) -> None:
        """Runs for as long as the node."""
        while True:
            delay_s = _WATCH_S
            try:
                if await self._change_if_due():
                    delay_s = _RETRY_S
                self._backoff.reset()
            except (PeerUnreachable, ApiError) as error:
                delay_s = self._backoff.next_s()
                if isinstance(error, ApiError) and error.code not in _PASSING:
                    logger.warning("cannot change this node's part in the quorum: %s", error)
            await asyncio.sleep(delay_s)

    async def _change_if_due(self) -> bool:
        """Whether a change was requested, so that it is worth checking again soon."""
        core = self._quorum.driver.core
        if core is None or self._quorum.leadership.leader_id is None:
            return True
        key, voters = self._identity.key, core.voters.latest
        voter = voters.voter(key.id)
        if key in voters:
            assert voter is not None
            if voter.endpoints == self._identity.endpoints and voter.key == key:
                return await self._remove_surplus(voters)
            await self._update(core)
        elif voter is not None:
            await self._replace(voter)
        elif not self._is_active:
            return True  # It will be in a moment, when this node's image shows it.
        elif self._should_vote(voters):
            await self._add(is_extra=len(voters) >= self._quorum_size)
        else:
            return False
        return True

    @property
    def _is_active(self) -> bool:
        return self._identity.key.id in {each.broker_id for each in self._image.active_brokers()}

    def _should_vote(self, voters: VoterSet) -> bool:
        candidates = [
            Candidate(broker.broker_id, broker.rack)
            for broker in self._image.active_brokers()
            if not is_cordoned(self._image, broker)
        ]
        me = next((node for node in candidates if node.node_id == self._identity.key.id), None)
        return me is not None and should_vote(
            me, self._as_candidates(voters), candidates, self._quorum_size
        )

    async def _remove_surplus(self, voters: VoterSet) -> bool:
        """The leader's task, so that no two nodes do it at once."""
        if not self._quorum.leadership.is_here:
            return False
        surplus = surplus_voter(
            self._as_candidates(voters), self._identity.key.id, self._quorum_size
        )
        voter = None if surplus is None else voters.voter(surplus.node_id)
        if surplus is None or voter is None:
            return False
        reason = "it is drained" if surplus.drained else "its rack has other voters"
        logger.info("node %d no longer votes: %s", surplus.node_id, reason)
        await self._call(
            RemoveRaftVoterRequest(cluster_id=self._identity.cluster_id, voter=voter.key)
        )
        return True

    def _as_candidates(self, voters: VoterSet) -> list[Candidate]:
        return [self._as_candidate(voter.key.id) for voter in voters]

    def _as_candidate(self, node_id: int) -> Candidate:
        broker = self._image.brokers.get(BrokerId(node_id))
        if broker is None:
            return Candidate(node_id, None)
        return Candidate(node_id, broker.rack, is_cordoned(self._image, broker))

    async def _add(self, *, is_extra: bool) -> None:
        """The leader removes another voter, if this one is one too many."""
        request = AddRaftVoterRequest(
            cluster_id=self._identity.cluster_id,
            timeout_ms=_CALL_TIMEOUT_MS,
            voter=self._identity.key,
            listeners=self._identity.endpoints,
            # False marks a node that adds itself while there are too few (KIP-1186).
            ack_when_committed=is_extra,
        )
        await self._call(request)
        logger.info("node %d votes in the quorum", self._identity.key.id)

    async def _replace(self, voter: Voter) -> None:
        """The controller has let this node register, so its former self is gone."""
        logger.warning(
            "node %d votes with another log directory; this one replaces it", voter.key.id
        )
        await self._call(
            RemoveRaftVoterRequest(cluster_id=self._identity.cluster_id, voter=voter.key)
        )

    async def _update(self, core: RaftNode) -> None:
        request = UpdateRaftVoterRequest(
            cluster_id=self._identity.cluster_id,
            current_leader_epoch=core.state.epoch,
            voter=self._identity.key,
            listeners=self._identity.endpoints,
            min_supported_version=0,
            max_supported_version=KRAFT_VERSION_MAX,
        )
        entity = _to_wire(request)
        if self._quorum.leadership.is_here:
            response: Any = await self._quorum.requests.handle(entity)
        else:
            address = self._quorum.leadership.address
            if address is None:
                return
            response = await self._peers.call(
                address,
                entity,
                timeout_ms=_CALL_TIMEOUT_MS,
                purpose="quorum",
            )
        if response.error_code is not ErrorCode.none:
            raise ApiError(response.error_code)

    async def _call(self, request: Request) -> None:
        await self._quorum.controller.call(_to_wire(request), timeout_ms=_CALL_TIMEOUT_MS)


def _to_wire(request: Request) -> Any:
    from ottla.raft.wire_requests import request_to_wire  # A single node never needs it.

    return request_to_wire(request)
