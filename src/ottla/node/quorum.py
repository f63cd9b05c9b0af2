"""This node's part in the metadata quorum: its replica of the log, its image, its controller.

The log is in the first log directory. A node that starts alone is a quorum of one; a node that
joins a cluster votes when the log says so. Which of the two a directory is for, before the log says
anything, is determined by its `quorum-state`: a joining node writes one first, without a vote for
itself.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple
from uuid import UUID

from ottla.controller.machine import ControllerMachine, ControllerSettings
from ottla.controller.record_codec import MetadataRecordCodec
from ottla.groups.config import OFFSETS_TOPIC_REPLICATION_FACTOR
from ottla.groups.share.config import STATE_TOPIC_REPLICATION_FACTOR
from ottla.machine.contract import Timers
from ottla.node.node_parts import Parts
from ottla.protocol.addresses import Address
from ottla.protocol.errors import ErrorCode
from ottla.protocol.topics import (
    CONSUMER_OFFSETS_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from ottla.raft.config import RaftConfig
from ottla.raft.node import RaftNode
from ottla.raft.quorum import Identity
from ottla.raft.quorum_state import QuorumState
from ottla.raft.voters import Voter, VoterSet
from ottla.runtime.absent_brokers import AbsentBrokers
from ottla.runtime.broker_connections import BrokerConnections
from ottla.runtime.claims import Claim
from ottla.runtime.config import QUORUM_SIZE, SNAPSHOT_BYTES
from ottla.runtime.controller import Controller
from ottla.runtime.controller_reports import ControllerReports
from ottla.runtime.ended_brokers import EndedBrokers
from ottla.runtime.fenced_brokers import FencedBrokers
from ottla.runtime.leadership import Leadership
from ottla.runtime.machine_runtime import MachineRuntime
from ottla.runtime.metadata_applier import MetadataApplier
from ottla.runtime.metadata_damage import read_voter_id
from ottla.runtime.metadata_snapshots import MetadataSnapshots
from ottla.runtime.quorum_requests import QuorumRequests
from ottla.runtime.quorum_state_file import QuorumStateFile
from ottla.runtime.raft_commit_log import RaftCommitLog
from ottla.runtime.raft_driver import DriverListener, RaftDriver
from ottla.runtime.raft_exchange import RaftExchange
from ottla.runtime.raft_log import RaftLog, metadata_directory
from ottla.storage.filesystem import Filesystem
from ottla.transactions.config import TRANSACTION_STATE_LOG_REPLICATION_FACTOR

logger = logging.getLogger(__name__)

_NO_LEADER_REPORT_S = 5.0


class StoredReplica(NamedTuple):
    """The replica on disk."""

    log: RaftLog
    state_file: QuorumStateFile
    quorum_state: QuorumState | None
    voters: VoterSet  # According to the log; empty if it has none.
    voter_id: UUID | None  # If it is not that of the log directory.

    def is_alone(self, node_id: int) -> bool:
        """Whether the node begins or began a cluster, if the log does not tell."""
        saved = self.quorum_state
        return (
            saved is None
            or saved.leader_id == node_id
            or (saved.voted is not None and saved.voted.id == node_id)
        )


def open_replica(filesystem: Filesystem, data_directory: str, now_ms: int) -> StoredReplica:
    """Call in a thread. DamagedMetadata if the files are inconsistent."""
    log = RaftLog.open(filesystem, data_directory, now_ms)
    state_file = QuorumStateFile(filesystem, metadata_directory(data_directory))
    return StoredReplica(
        log,
        state_file,
        state_file.load(),
        log.voters(VoterSet()).latest,
        read_voter_id(filesystem, data_directory),
    )


def initial_voters(identity: Identity, replica: StoredReplica) -> VoterSet:
    """The voters until the log has some: this node alone, unless it joins others."""
    alone = replica.is_alone(identity.key.id)
    return VoterSet.of([Voter(identity.key, identity.endpoints)] if alone else [])


class MetadataQuorum:
    def __init__(
        self,
        parts: Parts,
        identity: Identity,
        replica: StoredReplica,
        *,
        bootstrap: Mapping[int, Address],
        on_claim: Callable[[Claim], object],
    ) -> None:
        """`bootstrap` has addresses by the ids of `identity.bootstrap`."""
        self._parts = parts
        self._identity = identity
        self._loop, self._supervisor = parts.process.loop, parts.process.supervisor
        initial = initial_voters(identity, replica)
        voters = replica.voters or initial
        # Whether no other node takes part in the quorum, according to the disk.
        self.is_alone = len(voters) == 1 and identity.key in voters
        config = RaftConfig.of(parts.values)
        self.driver = self._new_driver(config, initial, replica, bootstrap)
        self._new_image(replica.log)
        self.leadership = Leadership(self.driver, self.applier, self._new_runtime, self._supervisor)
        self.requests = QuorumRequests(
            self.driver, config.request_timeout_ms, parts.values[QUORUM_SIZE], on_claim
        )
        self.controller = Controller(
            self.requests, self.leadership, self.applier, parts.peers, self._loop
        )
        self._watch_brokers()
        self._reports = ControllerReports(self._loop)
        self.driver.listen(
            DriverListener(
                self.leadership.on_role_change,
                self.applier.advance,
                self.applier.decode,
                self.applier.install,
            )
        )

    def _new_image(self, log: RaftLog) -> None:
        """Create what builds an image from the log, and snapshots from the image."""
        parts, codec = self._parts, MetadataRecordCodec()
        self.applier = MetadataApplier(
            log=log,
            codec=codec,
            feed=parts.feed,
            process=parts.process,
            on_failure=parts.on_failure,
        )
        self.snapshots = MetadataSnapshots(
            driver=self.driver,
            applier=self.applier,
            codec=codec,
            process=parts.process,
            bytes_max=parts.values[SNAPSHOT_BYTES],
        )
        self.applier.listen(self.snapshots.on_applied)

    def _watch_brokers(self) -> None:
        """Create what tells the controller of brokers that have ended, or never appeared."""
        parts, image = self._parts, self._parts.feed.image
        address_of = parts.brokers.address_of
        self._ended = EndedBrokers(
            node_id=parts.node_id,
            leadership=self.leadership,
            image=image,
            address_of=address_of,
            peers=parts.peers,
            supervisor=self._supervisor,
        )
        self.connections = BrokerConnections(self.leadership, self._ended.look_at)
        self._absent = AbsentBrokers(
            identity=self._identity,
            listener_name=parts.locks.inter_broker_listener,
            leadership=self.leadership,
            image=image,
            connected=lambda: self.connections.broker_ids,
            address_of=address_of,
            peers=parts.peers,
            supervisor=self._supervisor,
            random=parts.environment.random.random,
        )
        self.fenced = FencedBrokers(parts.process.clock)

    def _new_driver(
        self,
        config: RaftConfig,
        initial: VoterSet,
        replica: StoredReplica,
        bootstrap: Mapping[int, Address],
    ) -> RaftDriver:
        parts = self._parts
        return RaftDriver(
            identity=self._identity,
            config=config,
            initial_voters=initial,
            log=replica.log,
            state_file=replica.state_file,
            exchange=RaftExchange(
                node_id=parts.node_id,
                listener_name=parts.locks.inter_broker_listener,
                peers=parts.peers,
                learned=dict(bootstrap),
                supervisor=self._supervisor,
                timeout_ms=config.request_timeout_ms,
            ),
            random=parts.environment.random.randrange,
            process=parts.process,
            sync_executor=parts.environment.quorum_executor,
            on_failure=parts.on_failure,
        )

    async def start(self) -> None:
        """Returns at once; the leader and the high watermark follow later."""
        await self.applier.load()
        await self.driver.start()
        self._supervisor.start("ended brokers", self._ended.watch())
        self._supervisor.start("absent brokers", self._absent.watch())

    async def report_no_leader(self) -> None:
        """Runs for as long as the node: an operator should know why nothing progresses."""
        while True:
            await asyncio.wait([self.leadership.changed], timeout=_NO_LEADER_REPORT_S)
            core = self.driver.core
            if core is not None and self.leadership.leader_id is None:
                await asyncio.sleep(_NO_LEADER_REPORT_S)
                if self.leadership.leader_id is None:
                    text = _no_leader_text(core)
                    logger.warning("%s", text, extra={"template": "the quorum has no leader"})

    async def stop(self) -> None:
        """Give up leadership; then no controller timer writes to a closed log."""
        await self.driver.stop()
        self.leadership.unload("the node stops")

    def close(self) -> None:
        """Call in a thread, last."""
        self.driver.log.close()

    def _new_runtime(self, log: RaftCommitLog) -> MachineRuntime[ControllerMachine]:
        parts = self._parts
        settings = ControllerSettings(
            cluster_id=self._identity.cluster_id,
            config_rules=parts.rules,
            new_topic_id=parts.environment.new_uuid,
            placement_start=parts.environment.random.randrange,
            internal_factors=_INTERNAL_FACTORS,
            initial_users=parts.locks.initial_users,
        )

        def create(timers: Timers) -> ControllerMachine:
            machine = ControllerMachine(settings, timers)
            for record in parts.feed.image.snapshot():
                machine.replay(record, 0)
            return machine

        return MachineRuntime(
            create,
            MetadataRecordCodec(),
            log,
            parts.process.clock,
            self._loop,
            name="the metadata",
            on_failure=parts.on_failure,
            not_ready=ErrorCode.not_controller,
            observe=self._reports.observe,
        )


_INTERNAL_FACTORS = {
    CONSUMER_OFFSETS_TOPIC: OFFSETS_TOPIC_REPLICATION_FACTOR,
    TRANSACTION_STATE_TOPIC: TRANSACTION_STATE_LOG_REPLICATION_FACTOR,
    SHARE_GROUP_STATE_TOPIC: STATE_TOPIC_REPLICATION_FACTOR,
}


def _no_leader_text(core: RaftNode) -> str:
    voters = [
        f"{voter.key.id} at {endpoint.host}:{endpoint.port}"
        for voter in core.voters.latest
        for endpoint in voter.endpoints[:1]
    ]
    if not voters:
        return "no leader of the metadata quorum was found, nor who votes in it"
    return (
        "the metadata quorum has no leader as far as this node knows; a majority of its voters "
        f"must run: {', '.join(voters)}"
    )
