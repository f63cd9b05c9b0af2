"""The faults of a run, chosen by the seed: runs differ in kind, not only in luck."""

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING
from uuid import UUID

from ottla.raft.messages import NOBODY, AddRaftVoterRequest, Message, RemoveRaftVoterRequest
from ottla.raft.voters import ReplicaKey

if TYPE_CHECKING:
    from tests.raft.cluster import Cluster
    from tests.raft.replica import Replica


@dataclass(slots=True)
class Faults:
    voters: int
    observers: int
    drop: float
    duplicate: float
    late: float
    delay_ms_max: float
    sync_ms_max: float
    clock_drift: float
    interval_ms: float  # Between faults.
    down_ms_max: float
    snapshots: bool
    voter_changes: bool
    leader_bias: float  # How often the leader is hit.
    short_reign: float  # How often a leader crashes soon after its election or while committing.
    work_ms: float  # Between appends.
    fetch_bytes_max: int  # A batch has about 70.

    @classmethod
    def of(cls, random: Random) -> "Faults":
        return cls(
            voters=random.choice((1, 3, 3, 5)),
            observers=random.choice((0, 1, 2)),
            drop=random.choice((0, 0.01, 0.1)),
            duplicate=random.choice((0, 0.05)),
            late=random.choice((0, 0.01)),
            delay_ms_max=random.choice((2, 10, 25)),
            sync_ms_max=random.choice((1, 10, 30)),
            clock_drift=random.choice((0, 0.2)),
            interval_ms=random.choice((30, 100, 250)),
            down_ms_max=random.choice((50, 300)),
            snapshots=random.random() < 0.5,
            voter_changes=random.random() < 0.5,
            leader_bias=random.choice((0.2, 0.7)),
            work_ms=random.choice((4, 25)),
            short_reign=random.choice((0, 0, 0.5, 0.8)),
            fetch_bytes_max=random.choice((1, 150, 10_000)),
        )

    def stop(self) -> None:
        self.drop = self.duplicate = self.late = self.short_reign = 0
        self.delay_ms_max, self.sync_ms_max = 2, 1
        self.work_ms = 100


class Nemesis:
    """Causes one fault after another."""

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster
        self.stopped = False

    def act(self) -> None:
        if self.stopped:
            return
        cluster, random = self._cluster, self._cluster.random
        kinds = [self._crash, self._crash, self._partition, self._heal, self._resign, self._pause]
        if cluster.faults.snapshots:
            kinds += [self._snapshot, self._snapshot]
        if cluster.faults.voter_changes:
            kinds += [self._change_voters, self._change_voters]
        random.choice(kinds)()
        cluster.after(random.expovariate(1 / cluster.faults.interval_ms), self.act)

    def on_new_leader(self, leader: "Replica") -> None:
        cluster, faults = self._cluster, self._cluster.faults
        if cluster.random.random() < faults.short_reign:
            reign_ms = cluster.random.uniform(0, 6 * faults.delay_ms_max + faults.sync_ms_max)
            cluster.after(reign_ms, lambda: self._end_reign(leader))

    def on_commit(self, leader: "Replica") -> None:
        cluster = self._cluster
        if cluster.random.random() < cluster.faults.short_reign:
            cluster.after(0, lambda: self._end_reign(leader))

    def _victim(self) -> "Replica | None":
        cluster = self._cluster
        running = [replica for replica in cluster.replicas.values() if replica.is_up]
        leaders = [replica for replica in running if replica.leads]
        if leaders and cluster.random.random() < cluster.faults.leader_bias:
            return cluster.random.choice(leaders)
        return cluster.random.choice(running) if running else None

    def _crash(self) -> None:
        victim = self._victim()
        if victim is not None:
            self._bring_down(victim)

    def _end_reign(self, leader: "Replica") -> None:
        if leader.leads:
            self._bring_down(leader)

    def _bring_up(self, victim: "Replica") -> None:
        if not victim.is_up:
            victim.start()

    def _bring_down(self, victim: "Replica") -> None:
        victim.crash()
        down_ms = self._cluster.random.uniform(1, self._cluster.faults.down_ms_max)
        self._cluster.after(down_ms, lambda: self._bring_up(victim))

    def _pause(self) -> None:
        victim = self._victim()
        if victim is not None:
            pause_ms = self._cluster.random.choice((20, 400))
            victim.paused_until_ms = self._cluster.now_ms + pause_ms
            self._cluster.trace(f"{victim} pauses for {pause_ms} ms")

    def _partition(self) -> None:
        cluster, victim = self._cluster, self._victim()
        if victim is None:
            return
        others = [other for other in cluster.replicas if other != victim.key.id]
        count = cluster.random.randrange(len(cluster.replicas) // 2 + 1)
        group = {victim.key.id, *cluster.random.sample(others, min(count, len(others)))}
        one_way = cluster.random.random() < 0.3
        cluster.network.isolate(group, one_way=one_way)
        cluster.trace(f"partition {sorted(group)} one_way={one_way}")

    def _heal(self) -> None:
        self._cluster.network.heal()
        self._cluster.trace("heal")

    def _resign(self) -> None:
        for replica in self._cluster.replicas.values():
            if replica.leads:
                replica.run(lambda node: node.resign())

    def _snapshot(self) -> None:
        victim = self._victim()
        if victim is not None:
            victim.take_snapshot()

    def _change_voters(self) -> None:
        """Adds or removes a replica, as an operator would; the requests may fail."""
        cluster = self._cluster
        key = cluster.random.choice(list(cluster.replicas.values())).key
        for replica in cluster.replicas.values():
            if replica.node is not None and replica.leads:
                request = _change(key, is_voter=key in replica.node.voters.latest)
                cluster.trace(f"{type(request).__name__} {key} at {replica}")
                replica.step(Message(NOBODY, replica.key.id, 0, request))


def _change(key: ReplicaKey, *, is_voter: bool) -> AddRaftVoterRequest | RemoveRaftVoterRequest:
    if is_voter:
        return RemoveRaftVoterRequest(cluster_id="c", voter=key)
    return AddRaftVoterRequest(cluster_id="c", timeout_ms=200, voter=key, listeners=())


def key_of(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, UUID(int=node_id))
