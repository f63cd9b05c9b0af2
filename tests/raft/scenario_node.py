"""A node of a scenario: acts on its Ready at once, and traces what it does."""

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING
from uuid import UUID

from tests.raft.faults import key_of
from tests.raft.memory_log import Disk, MemoryLog, Snapshot
from tests.raft.scenario_trace import show_ready

from ottla.protocol.errors import ApiError
from ottla.raft.config import RaftConfig
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
from ottla.raft.voters import ReplicaKey, VoterSet
from ottla.records.builder import Record, build_batch

if TYPE_CHECKING:
    from tests.raft.scenario import Scenario

CONFIG = RaftConfig(
    election_timeout_ms=1000,
    fetch_timeout_ms=2000,
    fetch_bytes_max=1,  # One batch at a time.
    snapshot_chunk_bytes_max=100,
)


class ScenarioNode:
    def __init__(self, scenario: "Scenario", number: int, initial_voters: VoterSet) -> None:
        self.scenario = scenario
        self.number = number
        self.key = key_of(number)
        self.initial_voters = initial_voters
        self.now_ms = 0
        self.disk = Disk()
        self.log = MemoryLog()
        self.node: RaftNode | None = None
        self.syncs_at_once = True
        self._partial_snapshot = bytearray()

    def start(self) -> None:
        assert self.node is None
        others = tuple(number for number in self.scenario.nodes if number != self.number)
        self.node = RaftNode(
            identity=Identity(cluster_id="c", key=self.key, bootstrap=others[:1]),
            config=CONFIG,
            log=self.log,
            voters=self.log.voters(self.initial_voters),
            quorum_state=self.disk.quorum_state,
            random=lambda bound: self.number * 10 % bound,
            now_ms=self.now_ms,
        )
        self.scenario.tell(f"{self.number} starts as {self._role()}")

    def crash(self) -> None:
        self.node = None
        self.log = self.disk.crash(_Harsh())
        self.scenario.tell(f"{self.number} crashes, log ends at {self.log.end_offset}")

    def replace_disk(self) -> None:
        """Replaces it with an empty disk, which has another id and knows no voters."""
        assert self.node is None
        self.key = ReplicaKey(self.number, UUID(int=1000 + self.number))
        self.disk, self.log, self.initial_voters = Disk(), MemoryLog(), VoterSet()

    def advance(self, duration_ms: int) -> None:
        self.now_ms += duration_ms
        self.run(lambda node: node.tick(self.now_ms))

    def step(self, message: Message) -> None:
        self.run(lambda node: node.step(message))

    def fail_request(self, destination: int, correlation_id: int) -> None:
        self.run(lambda node: node.on_request_failed(destination, correlation_id, refused=True))

    def append(self, value: bytes) -> None:
        batch = build_batch([Record(timestamp=0, value=value)])
        try:
            self.run(lambda node: node.append(batch))
        except ApiError as error:
            self.scenario.tell(f"{self.number} refuses: {error.code.name}")

    def sync(self) -> None:
        self.disk.synced(self.log)
        self.run(lambda node: node.on_synced(self.log.end_offset))

    def take_snapshot(self) -> None:
        assert self.node is not None
        committed = self.log.batches_between(self.log.start_offset, self.node.high_watermark)
        end_offset = committed[-1].end_offset
        self.log.take_snapshot(end_offset, self.node.voters.at(end_offset))
        self.disk.synced(self.log)

    def run(self, call: Callable[[RaftNode], object]) -> None:
        if self.node is not None:
            call(self.node)
            self._act(self.node.take_ready())

    def _act(self, ready: Ready) -> None:
        for line in show_ready(ready):
            self.scenario.tell(f"{self.number} {line}")
        if ready.quorum_state is not None:
            self.disk.quorum_state = ready.quorum_state
        if ready.truncate_to is not None:
            self.log.truncate_to(ready.truncate_to)
            self.disk.wrote(self.log)
        for batch in ready.appends:
            self.log.append(batch)
            self.disk.wrote(self.log)
        if ready.snapshot_chunk is not None:
            del self._partial_snapshot[ready.snapshot_chunk.position :]
            self._partial_snapshot += ready.snapshot_chunk.data
        for message in ready.messages:
            self.scenario.send(self._filled(message))
        if ready.install_snapshot is not None:
            self._install(Snapshot(ready.install_snapshot, bytes(self._partial_snapshot)))
        if (ready.appends or ready.truncate_to is not None) and self.syncs_at_once:
            self.sync()

    def _install(self, snapshot: Snapshot) -> None:
        self.log.install(snapshot)
        self.disk.synced(self.log)
        self.run(lambda node: node.on_snapshot_installed(snapshot.id, snapshot.voters))

    def _filled(self, message: Message) -> Message:
        body = message.body
        if isinstance(body, FetchResponse) and isinstance(body.records, LogRange):
            data = self.log.read(body.records.start_offset, body.records.max_bytes)
            return message._replace(body=body._replace(records=data))
        if isinstance(body, FetchSnapshotResponse) and isinstance(
            body.unaligned_records, SnapshotRange
        ):
            part = body.unaligned_records
            assert self.log.snapshot is not None
            data = self.log.snapshot.content[part.position : part.position + part.max_bytes]
            return message._replace(body=body._replace(unaligned_records=data))
        return message

    def _role(self) -> str:
        assert self.node is not None
        state = self.node.state
        leader = "-" if state.leader_id is None else state.leader_id
        voter = "voter" if self.node.is_voter else "observer"
        return f"{state.role.value} ({voter}), epoch {state.epoch}, leader {leader}"

    def status(self) -> str:
        if self.node is None:
            return f"{self.number} is down"
        epochs = "".join(f" {batch.base_offset}@{batch.epoch}" for batch in self.log.batches)
        voters = ",".join(str(voter.key.id) for voter in self.node.voters.latest) or "-"
        return (
            f"{self.number} {self._role()}, committed {self.node.high_watermark},"
            f" voters {voters}, log{epochs or ' empty'} ends {self.log.end_offset}"
        )


class _Harsh(Random):
    """A crash loses everything unsynced."""

    def choice(self, choices):  # type: ignore[no-untyped-def]
        return choices[0]
