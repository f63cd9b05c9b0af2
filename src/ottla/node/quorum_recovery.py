"""Makes one node the only voter of the metadata quorum, after a majority of the voters was lost.

The node's own log is taken as the truth: what it lacks is gone, and what it has counts as
committed. Records at its end state that this node alone votes, and that the other voters are no
longer brokers: otherwise they would count as leaders until they are missed, and a surviving replica
would not count. The epoch of these records is far above any that the lost voters can have reached,
so that none of their logs is mistaken for a part of this one.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from uuid import UUID

from kio.schema.broker_heartbeat.v2.request import BrokerHeartbeatRequest
from kio.schema.types import BrokerId
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.static.primitive import i64

from ottla.controller.effective_configs import ConfigRules
from ottla.controller.machine import ControllerMachine, ControllerSettings
from ottla.controller.record_codec import MetadataRecordCodec
from ottla.machine.result import Result
from ottla.node.config import BROKER_SCHEMA, GROUP_SCHEMA, TOPIC_SCHEMA
from ottla.node.quorum import StoredReplica, open_replica
from ottla.raft.control_records import control_batch, voters_record
from ottla.raft.quorum_state import QuorumState
from ottla.raft.voters import ReplicaKey, Voter, VoterSet
from ottla.records.batch import assign, iterate_headers
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import iterate_records
from ottla.runtime.raft_log import READ_BYTES, RaftLog
from ottla.storage.broker_config import topic_defaults
from ottla.storage.checkpoints import MetaProperties
from ottla.storage.directory_identity import (
    WrongDirectory,
    lock_directory,
    parse_directory_id,
    read_identity,
)
from ottla.storage.filesystem import Filesystem

EPOCHS_SKIPPED: Final = 1000
_BATCH_RECORDS: Final = 1000


class Recoverable(NamedTuple):
    """What a directory contains."""

    cluster_id: str
    voters: tuple[int, ...]
    end_offset: int  # Of the metadata; of several nodes, use the one with the most.
    epoch: int


def recover_quorum(
    filesystem: Filesystem, data_directory: str, node_id: int, now_ms: int, *, change: bool
) -> Recoverable:
    """Without `change` it only looks. WrongDirectory, StorageError and OSError change nothing."""
    identity = read_identity(filesystem, data_directory)
    if identity is None:
        raise WrongDirectory(f"{data_directory} is not the directory of a node")
    if identity.node_id != node_id:
        raise WrongDirectory(
            f"log directory {data_directory} belongs to node {identity.node_id}, not to {node_id}"
        )
    lock = lock_directory(filesystem, data_directory)
    try:
        replica = open_replica(filesystem, data_directory, now_ms)
        try:
            found = _look(replica, identity, data_directory)
            if change:
                directory_id = replica.voter_id or parse_directory_id(identity.directory_id)
                key = ReplicaKey(node_id, directory_id)
                _go_on_alone(replica, key, found, now_ms)
            return found
        finally:
            replica.log.close()
    finally:
        lock.release()


def _look(replica: StoredReplica, identity: MetaProperties, data_directory: str) -> Recoverable:
    log, saved = replica.log, replica.quorum_state or QuorumState()
    if not log.end_offset:
        raise WrongDirectory(f"{data_directory} has no metadata of the cluster")
    return Recoverable(
        identity.cluster_id,
        tuple(voter.key.id for voter in replica.voters),
        log.end_offset,
        max(saved.leader_epoch, log.epoch_of(log.end_offset - 1)),
    )


def _go_on_alone(replica: StoredReplica, key: ReplicaKey, found: Recoverable, now_ms: int) -> None:
    log, epoch = replica.log, found.epoch + EPOCHS_SKIPPED
    known = replica.voters.voter(key.id)
    alone = VoterSet.of([Voter(key, known.endpoints if known else ())])
    removals = _Removals(log, found.cluster_id, now_ms)
    for node_id in found.voters:
        if node_id != key.id:
            removals.remove(node_id)
    batches = [control_batch([voters_record(alone)], now_ms), *removals.batches()]
    for batch in batches:
        assign(batch, 0, log.end_offset, epoch)
        log.append(batch)
    log.flush()
    replica.state_file.save(QuorumState(leader_epoch=epoch))


class _NoTimers:
    """Nothing happens by itself while the node is not running."""

    def schedule(self, key: str, deadline_ms: int, expiry: object) -> None: ...

    def cancel(self, key: str) -> None: ...


class _Removals:
    """What the controller would write to remove brokers that are lost with their disks."""

    def __init__(self, log: RaftLog, cluster_id: str, now_ms: int) -> None:
        rules = ConfigRules(TOPIC_SCHEMA, BROKER_SCHEMA, {}, topic_defaults, GROUP_SCHEMA)
        settings = ControllerSettings(
            cluster_id=cluster_id,
            config_rules=rules,
            new_topic_id=lambda: UUID(int=0),  # None is created.
            placement_start=lambda _: 0,
            internal_factors={},
        )
        self._machine = ControllerMachine(settings, _NoTimers())
        self._codec = MetadataRecordCodec()
        self._now_ms = now_ms
        self._records: list[object] = []
        for record in _stored(log):
            self._machine.replay(self._codec.decode(record.key, record.value), record.timestamp)

    def remove(self, node_id: int) -> None:
        brokers = self._machine.image.brokers
        while node_id in brokers and not brokers[node_id].fenced:
            heartbeat = BrokerHeartbeatRequest(
                broker_id=BrokerId(node_id),
                broker_epoch=brokers[node_id].broker_epoch,
                current_metadata_offset=i64(0),
                want_fence=True,
                want_shut_down=False,
            )
            self._take(self._machine.brokers.broker_heartbeat(heartbeat, self._now_ms, 0))
        if node_id in brokers:
            request = UnregisterBrokerRequest(broker_id=BrokerId(node_id))
            self._take(self._machine.brokers.unregister_broker(request))

    def batches(self) -> Iterator[bytearray]:
        encoded = [self._codec.encode(record) for record in self._records]
        for first in range(0, len(encoded), _BATCH_RECORDS):
            yield build_batch(
                [
                    Record(timestamp=self._now_ms, key=key, value=value)
                    for key, value in encoded[first : first + _BATCH_RECORDS]
                ]
            )

    def _take(self, result: Result[Any]) -> None:
        for record in result.records:
            self._machine.replay(record, self._now_ms)
            self._records.append(record)


def _stored(log: RaftLog) -> Iterator[Record]:
    """All metadata records, of the latest snapshot and after it."""
    offset = log.start_offset
    snapshot_id = log.latest_snapshot_id
    if snapshot_id is not None:
        yield from log.snapshots.read(snapshot_id).records
        offset = snapshot_id.offset
    while offset < log.end_offset:
        data, next_offset = log.read(offset, READ_BYTES, log.end_offset)
        for position, header in iterate_headers(data):
            if not header.is_control:
                for record in iterate_records(data, position):
                    if record.offset >= offset:
                        yield record
        offset = next_offset
