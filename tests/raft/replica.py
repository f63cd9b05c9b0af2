"""A node of the simulated cluster: the core, and a driver that acts on its Ready."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.raft.memory_log import Disk, MemoryLog, Snapshot

from ottla.raft.messages import (
    FetchResponse,
    FetchSnapshotResponse,
    LogRange,
    Message,
    SnapshotRange,
)
from ottla.raft.node import RaftNode
from ottla.raft.quorum import Identity
from ottla.raft.ready import Ready
from ottla.raft.states import Leader, Role
from ottla.raft.voters import ReplicaKey, VoterSet
from ottla.records.builder import Record, build_batch

if TYPE_CHECKING:
    from tests.raft.cluster import Cluster


class Replica:
    def __init__(
        self, cluster: "Cluster", key: ReplicaKey, initial_voters: VoterSet, clock_rate: float
    ) -> None:
        self.cluster = cluster
        self.key = key
        self.initial_voters = initial_voters
        self.clock_rate = clock_rate
        self.life = 0  # Counts restarts.
        self.paused_until_ms = 0.0  # It is frozen until then, and does not notice.
        self.disk = Disk()
        self.log = MemoryLog()
        self.node: RaftNode | None = None  # None while it is down.
        self.stepping: Message | None = None
        self._partial_snapshot = bytearray()
        self._syncing = False
        self._wake_ms: float | None = None

    def __str__(self) -> str:
        return str(self.key.id)

    @property
    def now_ms(self) -> int:
        return int(self.cluster.now_ms * self.clock_rate)

    @property
    def is_up(self) -> bool:
        return self.node is not None

    @property
    def leads(self) -> bool:
        return self.node is not None and isinstance(self.node.state, Leader)

    # Life.

    def start(self) -> None:
        assert self.node is None
        self.life += 1
        cluster = self.cluster
        self.node = RaftNode(
            identity=Identity(
                cluster_id="c",
                key=self.key,
                bootstrap=tuple(other for other in cluster.replicas if other != self.key.id),
            ),
            config=cluster.config,
            log=self.log,
            voters=self.log.voters(self.initial_voters),
            quorum_state=self.disk.quorum_state,
            random=cluster.random.randrange,
            now_ms=self.now_ms,
        )
        cluster.trace(f"{self} starts at epoch {self.node.state.epoch}")
        self.run(lambda node: None)

    def crash(self) -> None:
        self.node = None
        self.log = self.disk.crash(self.cluster.random)
        self._syncing = False
        self._wake_ms = None
        self.paused_until_ms = 0
        self.cluster.trace(f"{self} crashes, log ends at {self.log.end_offset}")

    def when_awake(self, action: Callable[[], None]) -> None:
        if self.paused_until_ms <= self.cluster.now_ms:
            action()
        else:
            self._later(0, action, self.paused_until_ms - self.cluster.now_ms)

    # Calls into the core.

    def run(self, call: Callable[[RaftNode], object]) -> None:
        node = self.node
        if node is None:
            return
        node.tick(self.now_ms)
        self._act(node.take_ready())
        call(node)
        self._act(node.take_ready())
        self._schedule_tick()

    def step(self, message: Message) -> None:
        self.stepping = message
        self.run(lambda node: node.step(message))
        self.stepping = None

    def append(self, value: bytes) -> None:
        batch = build_batch([Record(timestamp=0, value=value)])
        self.run(lambda node: node.append(batch) if self.leads else None)

    def take_snapshot(self) -> None:
        """Snapshots what is committed and synced, up to the end of a batch."""
        if self.node is None or self.log.start_offset == self.log.end_offset:
            return
        node, log = self.node, self.log
        committed = log.batches_between(log.start_offset, node.high_watermark)
        if committed and not self._syncing and log.end_offset >= committed[-1].end_offset:
            end_offset = committed[-1].end_offset
            log.take_snapshot(end_offset, node.voters.at(end_offset))
            self.disk.synced(log)

    # Acting on a Ready.

    def _act(self, ready: Ready) -> None:
        if not ready:
            return
        self._save_quorum_state(ready)
        if ready.truncate_to is not None:
            self.log.truncate_to(ready.truncate_to)
            self.disk.wrote(self.log)
        for batch in ready.appends:
            self.log.append(batch)
            self.disk.wrote(self.log)
        if ready.appends or ready.truncate_to is not None:
            self._sync_later()
        if ready.snapshot_chunk is not None:
            chunk = ready.snapshot_chunk
            assert chunk.position <= len(self._partial_snapshot)
            del self._partial_snapshot[chunk.position :]
            self._partial_snapshot += chunk.data
        if ready.install_snapshot is not None:
            snapshot = Snapshot(ready.install_snapshot, bytes(self._partial_snapshot))
            self._later(5, lambda: self._install(snapshot))
        for message in ready.messages:
            self.cluster.network.send(self._filled(message))
        for line in _told(ready):
            self.cluster.trace(f"{self} {line}")
        for checker in self.cluster.checkers:
            checker.check(self, ready)
        if ready.role_change is not None and ready.role_change.role is Role.LEADER:
            self.cluster.nemesis.on_new_leader(self)
        if ready.high_watermark is not None and self.leads:
            self.cluster.nemesis.on_commit(self)

    def _save_quorum_state(self, ready: Ready) -> None:
        if ready.quorum_state is not None:
            self.disk.quorum_state = ready.quorum_state

    def _sync_later(self) -> None:
        if not self._syncing:
            self._syncing = True
            self._later(self.cluster.faults.sync_ms_max, self._sync)

    def _sync(self) -> None:
        """Takes effect when reported, so nothing was truncated in between."""
        self._syncing = False
        self.disk.synced(self.log)
        end_offset = self.log.end_offset
        self.run(lambda node: node.on_synced(end_offset))

    def _install(self, snapshot: Snapshot) -> None:
        assert self.node is not None
        self.log.install(snapshot)
        self.disk.synced(self.log)
        self.node.on_snapshot_installed(snapshot.id, snapshot.voters)
        self._act(self.node.take_ready())
        self._schedule_tick()

    def _filled(self, message: Message) -> Message:
        body = message.body
        if isinstance(body, FetchResponse) and isinstance(body.records, LogRange):
            wanted = body.records
            data = self.log.read(wanted.start_offset, wanted.max_bytes)
            return message._replace(body=body._replace(records=data))
        if isinstance(body, FetchSnapshotResponse) and isinstance(
            body.unaligned_records, SnapshotRange
        ):
            part = body.unaligned_records
            assert self.log.snapshot is not None
            data = self.log.snapshot.content[part.position : part.position + part.max_bytes]
            return message._replace(body=body._replace(unaligned_records=data))
        return message

    def _later(self, most_ms: float, action: Callable[[], None], least_ms: float = 0) -> None:
        life = self.life

        def act() -> None:
            if self.life == life and self.node is not None:
                self.when_awake(action)

        self.cluster.after(least_ms + self.cluster.random.uniform(0, most_ms), act)

    def _schedule_tick(self) -> None:
        assert self.node is not None
        deadline_ms = self.node.next_deadline_ms
        if deadline_ms is None:
            return
        wake_ms = max((deadline_ms + 1) / self.clock_rate, self.cluster.now_ms)
        if self._wake_ms is None or wake_ms < self._wake_ms:
            self._wake_ms = wake_ms
            life = self.life
            self.cluster.at(wake_ms, lambda: self._wake(life, wake_ms))

    def _wake(self, life: int, wake_ms: float) -> None:
        if self.life == life and self._wake_ms == wake_ms:
            self._wake_ms = None
            self.when_awake(lambda: self.run(lambda node: None))


def _told(ready: Ready) -> list[str]:
    lines = []
    if ready.role_change is not None:
        change = ready.role_change
        lines.append(f"is {change.role.value} in epoch {change.epoch}, leader {change.leader_id}")
    if ready.truncate_to is not None:
        lines.append(f"truncates to {ready.truncate_to}")
    if ready.install_snapshot is not None:
        lines.append(f"installs snapshot {tuple(ready.install_snapshot)}")
    if ready.high_watermark is not None:
        lines.append(f"commits to {ready.high_watermark}")
    return lines
