"""Bugs planted on purpose, to check that they are found.

Each replaces one decision of the product for the length of a run, and has a profile with the faults
that reveal it. Systems like this one have had these bugs.
"""

import logging
from array import array
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final
from unittest.mock import patch

from ottla.controller.records import PartitionRecord
from ottla.coordination.partition_commit_log import PartitionCommitLog
from ottla.groups.share.key_order import KeyOrder
from ottla.groups.share.parked import ParkedChange
from ottla.groups.share.parking_lot import ParkingLot
from ottla.groups.share.state_coordinator import ShareStateMachine
from ottla.network import peers
from ottla.network.peers import BuildFrame, Peers, PeerUnreachable, _Connection
from ottla.protocol.hot_replica_fetch import ReplicaFetchPosition
from ottla.raft import elections
from ottla.raft.quorum import Quorum
from ottla.raft.quorum_state import QuorumState
from ottla.raft.states import Candidate, Prospective, State, Unattached
from ottla.raft.voters import ReplicaKey
from ottla.replication.damaged_replicas import DamagedReplicas
from ottla.replication.partition import Partition
from ottla.replication.partition_leader import PartitionLeader
from ottla.replication.replica_fetcher import ReplicaFetcher
from ottla.runtime.quorum_state_file import QuorumStateFile
from ottla.testing.simulator.profile import Profile, absence

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Plant:
    put_in: Callable[[ExitStack], None]
    profile: Profile


UNKNOWN_EPOCH: Final = -1


@contextmanager
def planted(name: str | None) -> Iterator[None]:
    """With the bug of this name in place; None stands for none."""
    with ExitStack() as stack:
        if name is not None:
            PLANTS[name].put_in(stack)
        yield


def _replace(stack: ExitStack, owner: object, name: str, wrong: object) -> None:
    stack.enter_context(patch.object(owner, name, wrong))


def _ack_before_commit(stack: ExitStack) -> None:
    """A producer is answered when the leader alone has the records."""
    _replace(stack, PartitionLeader, "acknowledged", lambda *_: True)


def _truncate_by_high_watermark(stack: ExitStack) -> None:
    """A follower truncates to its high watermark, whatever the leader has (before KIP-101)."""
    follow, position = ReplicaFetcher.follow, ReplicaFetcher._position

    def truncate_and_follow(self: ReplicaFetcher, partition: Partition) -> None:
        log = partition.log
        self._tools.logs.truncate({log.topic_partition: log.high_watermark})
        follow(self, partition)

    def position_without_epoch(self: ReplicaFetcher, key: Any) -> ReplicaFetchPosition:
        return position(self, key)._replace(last_fetched_epoch=UNKNOWN_EPOCH)

    _replace(stack, ReplicaFetcher, "follow", truncate_and_follow)
    _replace(stack, ReplicaFetcher, "_position", position_without_epoch)


def _vote_twice(stack: ExitStack) -> None:
    """A voter grants every candidate of an epoch its vote, and itself another one."""

    def grants_any(state: State, _: ReplicaKey, *, up_to_date: bool) -> bool:
        return up_to_date and isinstance(state, Unattached | Prospective | Candidate)

    def vote_for_any(self: Quorum, candidate: ReplicaKey) -> None:
        if isinstance(self.state, Unattached | Prospective):
            self._become(replace(self.state, voted=candidate))

    _replace(stack, elections, "grants_vote", grants_any)
    _replace(stack, Quorum, "vote_for", vote_for_any)


def _vote_without_sync(stack: ExitStack) -> None:
    """A vote is on its way before the disk has it."""

    def save_unsynced(self: QuorumStateFile, state: QuorumState) -> None:
        temporary = f"{self.path}.new"
        file = self._filesystem.open(temporary, create=True)
        file.truncate(0)
        file.append(state.to_json().encode())
        file.close()
        self._filesystem.rename(temporary, self.path)

    _replace(stack, QuorumStateFile, "save", save_unsynced)


def _commit_offsets_before_replication(stack: ExitStack) -> None:
    """A coordinator answers when the leader alone has its records."""
    _replace(stack, PartitionCommitLog, "committed_offset", property(lambda self: self.next_offset))


def _hold_failures(stack: ExitStack) -> None:
    """Whoever calls a peer holds the exception in a frame of its traceback: a cycle each time."""
    send = _Connection.send

    async def send_and_hold(self: _Connection, build: BuildFrame, timeout_ms: float) -> memoryview:
        try:
            return await send(self, build, timeout_ms)
        except PeerUnreachable as error:
            held = error  # noqa: F841
            raise

    _replace(stack, _Connection, "send", send_and_hold)


def _log_every_attempt(stack: ExitStack) -> None:
    """Peers that are gone are tried without a pause, with a line for each time."""
    on_failed = Peers._on_failed

    def log_and_fail(
        self: Peers, failed: _Connection, reason: str, error: type[PeerUnreachable]
    ) -> None:
        logger.warning("%s %s", failed.key[0], reason)
        on_failed(self, failed, reason, error)

    _replace(stack, Peers, "_on_failed", log_and_fail)
    _replace(stack, peers, "BACKOFF_MAX_S", 0.0)


def _repair_in_sync(stack: ExitStack) -> None:
    """A damaged replica truncates its log while it leads, or counts as in sync."""

    async def truncate(self: DamagedReplicas, partition: Partition, _: PartitionRecord) -> bool:
        log = partition.log
        self._logs.truncate({log.topic_partition: log.damage[0].first_offset})
        return True

    _replace(stack, DamagedReplicas, "_advance", truncate)


def _forget_parked(stack: ExitStack) -> None:
    """A new leader of a share-partition takes what waits or is held for due."""
    load = ParkingLot._load

    def load_as_due(self: ParkingLot, page: ParkedChange) -> None:
        dues = array("q", [min(due_ms, 0) for due_ms in page.dues_ms])
        load(self, page._replace(dues_ms=dues))

    _replace(stack, ParkingLot, "_load", load_as_due)


def _forget_keys(stack: ExitStack) -> None:
    """A new leader of a share-partition does not know which records have the same key."""
    set_order = ParkingLot.set_order
    _replace(stack, ParkingLot, "set_order", lambda self, _: set_order(self, KeyOrder()))


def _write_after_a_lost_write(stack: ExitStack) -> None:
    """A share coordinator takes a change though the one before it went with its predecessor."""
    _replace(stack, ShareStateMachine, "_validate_writer", lambda *_: None)


_THREE_NODES: Final = Profile(
    nodes_count=3, plain_producers_count=0, duration_s=40.0, fault_interval_s=1.0
)
_IDLE: Final = Profile(  # With elections that come fast.
    nodes_count=3,
    partitions_count=1,
    idempotent_producers_count=0,
    plain_producers_count=0,
    readers_count=0,
    duration_s=120.0,
    fault_interval_s=1.0,
    election_timeout_ms=100,
)

PLANTS: Final = {
    "ack-before-commit": Plant(
        _ack_before_commit, replace(_THREE_NODES, faults=("kill", "isolate", "power_loss"))
    ),
    "truncate-by-high-watermark": Plant(
        _truncate_by_high_watermark,
        replace(_THREE_NODES, faults=("power_loss_everywhere", "power_loss", "kill", "slow_disk")),
    ),
    "vote-twice": Plant(_vote_twice, replace(_IDLE, faults=("pause", "isolate", "slow_disk"))),
    "vote-without-sync": Plant(
        _vote_without_sync, replace(_IDLE, faults=("power_loss", "isolate"))
    ),
    "commit-offsets-before-replication": Plant(
        _commit_offsets_before_replication,
        replace(_THREE_NODES, faults=("isolate", "kill", "kill_client"), consumer_members_count=2),
    ),
    "repair-in-sync": Plant(
        _repair_in_sync,
        replace(_THREE_NODES, faults=("flip_bits",), plain_producers_count=1, duration_s=90.0),
    ),
    "forget-parked": Plant(
        _forget_parked,
        replace(_THREE_NODES, faults=("kill", "isolate", "kill_client"), queue_workers_count=2),
    ),
    "forget-keys": Plant(
        _forget_keys,
        replace(
            _THREE_NODES,
            faults=("kill", "isolate", "kill_client"),
            queue_workers_count=2,
            queue_order=True,
        ),
    ),
    "write-after-a-lost-write": Plant(
        _write_after_a_lost_write,
        replace(
            _THREE_NODES,
            faults=("isolate", "cut", "kill_client"),
            queue_workers_count=2,
            round_interval_s=0.5,
            duration_s=60.0,
        ),
    ),
    "hold-failures": Plant(_hold_failures, replace(absence(2), duration_s=600.0)),
    "log-every-attempt": Plant(_log_every_attempt, replace(absence(1), duration_s=120.0)),
}
