"""A cluster in one thread and in virtual time: the seed determines everything."""

import heapq
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any

from tests.raft.checkers import all_checkers
from tests.raft.faults import Faults, Nemesis, key_of
from tests.raft.network import Network
from tests.raft.replica import Replica
from tests.raft.violation import Stalled

from ottla.raft.config import RaftConfig
from ottla.raft.voters import Voter, VoterSet

FAULTS_MS = 2_500
CALM_MS = 20_000

CONFIG = RaftConfig(
    election_timeout_ms=100,
    fetch_timeout_ms=200,
    election_backoff_max_ms=100,
    request_timeout_ms=150,
    retry_backoff_ms=20,
    fetch_max_wait_ms=60,
    snapshot_chunk_bytes_max=64,
)


class Cluster:
    def __init__(
        self,
        seed: int,
        *,
        faults: Mapping[str, Any] | None = None,
        replica_type: type[Replica] = Replica,
    ) -> None:
        self.random = Random(seed)
        self.faults = replace(Faults.of(self.random), **(faults or {}))
        self.config = replace(CONFIG, fetch_bytes_max=self.faults.fetch_bytes_max)
        self.now_ms = 0.0
        self.lines: list[str] = []
        self.network = Network(self)
        self.checkers = all_checkers()
        self.nemesis = Nemesis(self)
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._sequence = count()
        self._values = count()
        self.replicas = self._make_replicas(replica_type)

    def _make_replicas(self, replica_type: type[Replica]) -> dict[int, Replica]:
        voters = VoterSet.of(Voter(key_of(number)) for number in range(1, self.faults.voters + 1))
        drift = self.faults.clock_drift
        return {
            number: replica_type(
                self,
                key_of(number),
                voters if number <= self.faults.voters else VoterSet(),
                1 + self.random.uniform(-drift, drift),
            )
            for number in range(1, self.faults.voters + self.faults.observers + 1)
        }

    # Time.

    def at(self, time_ms: float, action: Callable[[], object]) -> None:
        heapq.heappush(self._events, (time_ms, next(self._sequence), action))

    def after(self, delay_ms: float, action: Callable[[], object]) -> None:
        self.at(self.now_ms + delay_ms, action)

    def run_until(self, end_ms: float, done: Callable[[], bool] = lambda: False) -> None:
        while self._events and self._events[0][0] <= end_ms and not done():
            self.now_ms, _, action = heapq.heappop(self._events)
            action()

    def trace(self, line: str) -> None:
        self.lines.append(f"{self.now_ms:9.2f} {line}")

    # A run.

    def run(self) -> None:
        """Raises Violation, Stalled, or an AssertionError of the core."""
        for replica in self.replicas.values():
            replica.start()
        self.after(0, self._work)
        self.after(self.faults.interval_ms, self.nemesis.act)
        self.run_until(FAULTS_MS)
        self.nemesis.stopped = True
        self._calm()

    def _work(self) -> None:
        for replica in self.replicas.values():
            if replica.leads and replica.paused_until_ms <= self.now_ms:
                for _ in range(self.random.choice((1, 1, 3))):
                    replica.append(b"%d" % next(self._values))
        self.after(self.random.expovariate(1 / self.faults.work_ms), self._work)

    def _calm(self) -> None:
        """Without faults the cluster elects a leader, commits, and every replica catches up."""
        self.faults.stop()
        self.network.heal()
        for replica in self.replicas.values():
            if not replica.is_up:
                replica.start()
        goal = self._committed() + 1
        self.run_until(self.now_ms + CALM_MS, lambda: self._has_all_caught_up(goal))
        if not self._has_all_caught_up(goal):
            raise Stalled(f"no progress without faults: not all have committed {goal}")

    def _committed(self) -> int:
        running = (replica.node for replica in self.replicas.values() if replica.node)
        return max(node.high_watermark for node in running)

    def _has_all_caught_up(self, goal: int) -> bool:
        return all(
            replica.node is not None and replica.node.high_watermark >= goal
            for replica in self.replicas.values()
        )
