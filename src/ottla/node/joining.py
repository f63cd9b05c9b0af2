"""How a node with a new directory finds the cluster that it should join.

It asks the configured nodes for their cluster id, marks the directory as joining, and takes part in
the quorum as an observer (see `quorum`). A directory that has been in a cluster finds the way by
its own log.
"""

import asyncio
import logging
from asyncio import AbstractEventLoop
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import field
from typing import Final, NamedTuple

from ottla.network.peers import Peers, PeerUnreachable
from ottla.node.beginning import read_claim
from ottla.protocol.addresses import Address, parse_address
from ottla.protocol.codec import newest_request_type
from ottla.protocol.lazy_dataclass import dataclass
from ottla.raft.quorum_state import QuorumState
from ottla.runtime.metadata_damage import finish_setting_aside
from ottla.runtime.quorum_state_file import QuorumStateFile
from ottla.runtime.raft_log import metadata_directory
from ottla.storage.checkpoints import META_PROPERTIES
from ottla.storage.directory_identity import REPAIR, read_identity
from ottla.storage.filesystem import Filesystem

logger = logging.getLogger(__name__)

_ATTEMPT_MAX_S: Final = 3.0
_ATTEMPT_MIN_S: Final = 0.5  # Less would measure this machine rather than the other.
_FIRST_PAUSE_S: Final = 0.1
_PAUSE_MAX_S: Final = 0.5
_SESSION_LOOK_S: Final = 0.2
_DESCRIBE_CLUSTER_KEY: Final = 60
_DESCRIBE_CLUSTER_VERSION: Final = 0


class CannotJoin(Exception):
    """The message is for the person who started the node."""


def addresses_problem(texts: Sequence[str]) -> str | None:
    for text in texts:
        try:
            parse_address(text)
        except ValueError as error:
            return str(error)
    return None


class FoundCluster(NamedTuple):
    cluster_id: str
    brokers: Mapping[int, Address]  # Those with a valid session.


@dataclass(slots=True, kw_only=True, eq=False)
class Joining:
    peers: Peers
    addresses: Sequence[Address]
    node_id: int
    filesystem: Filesystem
    directories: Sequence[str]
    loop: AbstractEventLoop
    executor: Executor
    timeout_s: float  # For a node that answers.
    patience_s: float  # For the session of an earlier run of this node, which must end.
    # The cluster of the nodes to join, if it is another.
    _stranger_id: str | None = field(init=False, default=None)

    async def cluster_id(self) -> str | None:
        """Of the cluster that this node is in or joins; None if it should begin one. CannotJoin."""
        run = self.loop.run_in_executor
        cluster_id = await run(self.executor, self._stored_cluster_id)
        if cluster_id is not None:
            if self.addresses:
                await self._validate_same(cluster_id)
            return cluster_id
        if self.addresses:
            cluster_id = await self._find_cluster()
            await run(self.executor, self.mark, QuorumState())
        return cluster_id

    async def _validate_same(self, cluster_id: str) -> None:
        try:
            found = await self._find(timeout_s=0.0)
        except CannotJoin:
            return  # It knows others from its own log, or is itself the first to be asked.
        if found.cluster_id != cluster_id:
            self._stranger_id = found.cluster_id

    def validate_member(self, cluster_id: str, voter_ids: Iterable[int]) -> None:
        """Whether to continue if nodes of another cluster answer where this one should join.

        A node that knows others continues with them: in the place of one of them, a node that has
        lost its disk may have begun a cluster, which ends when it hears from this one. CannotJoin.
        """
        if self._stranger_id is None:
            return
        text = (
            f"log directory {self.directories[0]} belongs to cluster {cluster_id}, and the "
            f"nodes to join are of cluster {self._stranger_id}"
        )
        if set(voter_ids) <= {self.node_id}:
            raise CannotJoin(f"{text}; give it a new directory to join them")
        logger.error("%s; continuing with the nodes that it knows", text)

    async def _find_cluster(self) -> str:
        """The id of a cluster without a live node with this number."""
        deadline: float | None = None
        while True:
            found = await self._find(self.timeout_s)
            holder = found.brokers.get(self.node_id)
            if holder is None:
                return found.cluster_id
            is_late = deadline is not None and self.loop.time() >= deadline
            if is_late or await self._is_alive(holder, found.cluster_id):
                raise CannotJoin(
                    f"node id {self.node_id} is taken by the node at {holder}, which is alive; "
                    "give this one another id"
                )
            if deadline is None:
                deadline = self.loop.time() + self.patience_s
                logger.info("waiting for the session of the previous node %d to end", self.node_id)
            await asyncio.sleep(_SESSION_LOOK_S)

    async def _is_alive(self, address: Address, cluster_id: str) -> bool:
        """Whether a node of the cluster answers where the one with this node's id should be.

        None does if this is the node's own old address, before it lost its directory: it is not
        listening yet.
        """
        try:
            return (await self.ask(address)).cluster_id == cluster_id
        except PeerUnreachable:
            return False

    async def _find(self, timeout_s: float) -> FoundCluster:
        """Ask until a node answers; without a timeout each is asked once. CannotJoin, in time."""
        deadline = self.loop.time() + timeout_s
        pause_s = _FIRST_PAUSE_S
        while True:
            found = await self._ask_in_turn(deadline if timeout_s else None)
            if isinstance(found, FoundCluster):
                return found
            if self.loop.time() + pause_s + _ATTEMPT_MIN_S > deadline:
                raise CannotJoin(
                    f"cannot join a cluster: {found}; give --join the address of a node that "
                    "runs, or leave it out to begin a cluster"
                )
            if pause_s == _FIRST_PAUSE_S:
                logger.warning("no node to join answers yet: %s", found)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_MAX_S)

    async def _ask_in_turn(self, deadline: float | None) -> FoundCluster | str:
        """The response of the first node that answers, or why none does.

        Each has its share of the time, so silent nodes do not keep the others from being asked.
        """
        reasons = []
        for index, address in enumerate(self.addresses):
            timeout_s = _ATTEMPT_MAX_S
            if deadline is not None:
                share_s = (deadline - self.loop.time()) / (len(self.addresses) - index)
                timeout_s = max(_ATTEMPT_MIN_S, min(share_s, _ATTEMPT_MAX_S))
            try:
                return await self.ask(address, timeout_s)
            except PeerUnreachable as error:
                reasons.append(str(error))
        return "; ".join(reasons)

    async def ask(self, address: Address, timeout_s: float = _ATTEMPT_MAX_S) -> FoundCluster:
        """PeerUnreachable if it does not answer."""
        request = newest_request_type(_DESCRIBE_CLUSTER_KEY)(
            include_cluster_authorized_operations=False, include_fenced_brokers=False
        )
        response = await self.peers.call(
            address,
            request,
            version=_DESCRIBE_CLUSTER_VERSION,
            timeout_ms=timeout_s * 1000,
            purpose="joining",
            at_once=True,
        )
        brokers = {
            broker.broker_id: Address(broker.host, broker.port) for broker in response.brokers
        }
        return FoundCluster(response.cluster_id, brokers)

    # Called in threads.

    def mark(self, state: QuorumState) -> None:
        """Record whether the directory joins or begins a cluster, before it gets its cluster id.

        An interrupted start continues the way it began, and if a directory with an id lacks this
        record, its metadata is gone.
        """
        directory = metadata_directory(self.directories[0])
        self.filesystem.make_directory(directory)
        QuorumStateFile(self.filesystem, directory).save(state)

    def _stored_cluster_id(self) -> str | None:
        """None if the directory is new."""
        first, *others = self.directories
        finish_setting_aside(self.filesystem, first)
        claim = read_claim(self.filesystem, first)
        if claim is not None:
            raise CannotJoin(claim)
        identity = read_identity(self.filesystem, first)
        state = QuorumStateFile(self.filesystem, metadata_directory(first)).load()
        if identity is not None:
            if state is None:
                raise CannotJoin(_metadata_gone(first, identity.cluster_id))
            return identity.cluster_id
        if state is not None and state.leader_epoch > 0:
            raise CannotJoin(
                f"{first}/{META_PROPERTIES} is missing, and {first} has the metadata of a cluster. "
                f"{REPAIR}"
            )
        if self.addresses:
            return None
        if state is not None and state.voted is None:
            raise CannotJoin(f"{first} is to join a cluster; say which with --join")
        for other in others:
            identity = read_identity(self.filesystem, other)
            if identity is not None:
                raise CannotJoin(
                    f"{first} is new, and {other} is of cluster {identity.cluster_id}, whose "
                    f"metadata was in the first directory. {_METADATA_REPAIR}"
                )
        return None


_METADATA_REPAIR: Final = (
    "If its disk is missing, mount it. If it is lost, move all the directories of the node away "
    "and start it with --join HOST:PORT of another node of the cluster"
)


def _metadata_gone(directory: str, cluster_id: str) -> str:
    return (
        f"{directory} is of cluster {cluster_id}, and the cluster's metadata is gone from "
        f"{metadata_directory(directory)}. {_METADATA_REPAIR}"
    )
