"""The cluster of this node, and its replica of that cluster's metadata.

A damaged replica is set aside once, if the other nodes have a leader without it (see
`metadata_repair`); the step that found the damage is then repeated.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from ottla.network.endpoints import Endpoint
from ottla.node.config import QUORUM_BOOTSTRAP_SERVERS, QUORUM_JOIN_TIMEOUT_MS
from ottla.node.joining import CannotJoin, Joining
from ottla.node.metadata_repair import MetadataRepair
from ottla.node.node_parts import Parts
from ottla.node.quorum import MetadataQuorum, StoredReplica, open_replica
from ottla.protocol.addresses import parse_address
from ottla.raft.quorum import Identity
from ottla.raft.quorum_state import QuorumState
from ottla.raft.voters import Endpoint as QuorumEndpoint
from ottla.raft.voters import ReplicaKey
from ottla.runtime.claims import Claim
from ottla.storage.errors import DamagedMetadata

_T = TypeVar("_T")


class Membership:
    def __init__(self, parts: Parts, patience_s: float) -> None:
        self._parts = parts
        self._process = parts.process
        self._directory = parts.directories[0]  # The metadata directory.
        self._bootstrap = [parse_address(text) for text in parts.values[QUORUM_BOOTSTRAP_SERVERS]]
        self._joining = Joining(
            peers=parts.peers,
            addresses=self._bootstrap,
            node_id=parts.node_id,
            filesystem=parts.environment.filesystem,
            directories=parts.directories,
            loop=self._process.loop,
            executor=self._process.executor,
            timeout_s=parts.values[QUORUM_JOIN_TIMEOUT_MS] / 1000,
            patience_s=patience_s,
        )

    async def cluster_id(self) -> str | None:
        """Of the cluster that this node is in or joins; None if it should begin one. CannotJoin."""
        return await self._repairing(self._joining.cluster_id, is_locked=False)

    async def begin(self) -> None:
        """Mark the directory as one that begins a cluster."""
        state = QuorumState(voted=ReplicaKey(self._parts.node_id))
        await self._process.in_thread(self._joining.mark, state)

    async def open_quorum(
        self, advertised: Sequence[Endpoint], on_claim: Callable[[Claim], None]
    ) -> MetadataQuorum:
        """Call after the log directories are loaded. CannotJoin."""
        parts, directories = self._parts, self._parts.logs.log_dirs
        replica = await self._repairing(self._open_replica, is_locked=True)
        replica.log.watch_directory(lambda: directories.is_in_place(self._directory))
        if not (replica.voters or self._bootstrap or replica.is_alone(parts.node_id)):
            raise CannotJoin(f"{self._directory} is to join a cluster; say which with --join")
        self._joining.validate_member(
            directories.cluster_id, (voter.key.id for voter in replica.voters)
        )
        # Addresses of unknown nodes, under ids that no node has.
        bootstrap = {-2 - index: address for index, address in enumerate(self._bootstrap)}
        directory_id = replica.voter_id or directories.ids.get(self._directory)
        identity = Identity(
            cluster_id=directories.cluster_id,
            key=ReplicaKey(parts.node_id, directory_id),
            endpoints=tuple(QuorumEndpoint(*endpoint) for endpoint in advertised),
            bootstrap=tuple(bootstrap),
        )
        return MetadataQuorum(parts, identity, replica, bootstrap=bootstrap, on_claim=on_claim)

    def _open_replica(self) -> Awaitable[StoredReplica]:
        environment = self._parts.environment
        return self._process.in_thread(
            open_replica, environment.filesystem, self._directory, environment.clock.now_ms()
        )

    async def _repairing(self, attempt: Callable[[], Awaitable[_T]], *, is_locked: bool) -> _T:
        """Retry with an empty replica, if this one is damaged and others have a leader."""
        try:
            return await attempt()
        except DamagedMetadata as error:
            repair = MetadataRepair(self._joining, self._parts)
            self._bootstrap = await repair.set_aside(error, self._bootstrap, is_locked=is_locked)
            return await attempt()
