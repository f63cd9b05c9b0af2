"""A run: which peers, how many rounds, their servers, topics, loads, and the samples taken."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks import processes
from benchmarks.cluster import CLUSTER_NODES, Cluster
from benchmarks.peers.peer import ClusterPeer, Flush, Peer, Server, spawn_server
from benchmarks.results import SUBJECT, Results

LOAD_SECONDS_MAX = 300.0
READY_SECONDS_MAX = 240.0
SOURCE = Path(__file__).parents[1]
# As for users: modules are compiled after the first import.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

Outcome = dict[str, float]


class Effort(NamedTuple):
    """How long a run takes."""

    rounds: int  # For rows with a requirement.
    grid_rounds: int  # For the other rows.
    seconds: float  # Per measurement.
    idle_seconds: float  # Before idle memory is measured.
    heavy: bool  # Whether the scenarios that fill disks and tables run at full size.


FULL = Effort(rounds=3, grid_rounds=1, seconds=2.0, idle_seconds=10.0, heavy=True)
QUICK = Effort(rounds=1, grid_rounds=1, seconds=1.0, idle_seconds=2.0, heavy=False)
# Two versions differ by a few percent, and a single round by more: many short ones.
QUICK_AGAINST = QUICK._replace(rounds=5, grid_rounds=5, seconds=0.5)


class LoadFailed(Exception):
    """A load process ended with an error or did not end in time."""


@dataclass
class Bench:
    """Owns the servers that scenarios share; `close` stops them."""

    peers: list[Peer]  # They speak Kafka's protocol.
    guests: list[Peer]  # They do not.
    effort: Effort
    directory: Path
    say: Callable[[str], None]
    results: Results = field(default_factory=Results)
    _servers: dict[tuple[str, Flush | None], Server] = field(default_factory=dict)
    _warm: set[tuple[str, str]] = field(default_factory=set)
    _names: Iterator[int] = field(default_factory=count)

    def server(self, peer: Peer, flush: Flush) -> Server:
        """The peer's shared server for this flush policy, started on first use."""
        key = (peer.name, None if peer.shares_server() else flush)
        if key not in self._servers:
            server = spawn_server(peer, self.new_directory(peer), flush)
            self._servers[key] = server  # Registered before it is ready, so that `close` stops it.
            wait_until_ready(server)
        return self._servers[key]

    @contextmanager
    def fresh_server(self, peer: Peer, flush: Flush) -> Iterator[Server]:
        """A server of its own, stopped at the end."""
        server = spawn_server(peer, self.new_directory(peer), flush)
        try:
            if peer in self.guests:
                server.wait_until_listening()
            else:
                wait_until_ready(server)
            yield server
        finally:
            server.stop()

    @contextmanager
    def fresh_cluster(
        self,
        peer: ClusterPeer,
        flush: Flush,
        settings: Mapping[str, str] | None = None,
        count: int = CLUSTER_NODES,
    ) -> Iterator[Cluster]:
        """Nodes of one cluster, stopped at the end."""
        cluster = Cluster(peer, self.new_directory(peer), flush, settings or {}, count)
        try:
            cluster.start()
            for server in cluster.servers:
                wait_until_ready(server, count)
            yield cluster
        finally:
            cluster.stop()

    @contextmanager
    def topic(
        self, server: Server | Cluster, flush: Flush, partitions: int = 1, replicas: int = 1
    ) -> Iterator[str]:
        """A new topic, deleted at the end."""
        name = self.create_topic(server, flush, partitions, replicas)
        try:
            yield name
        finally:
            admin = AdminClient({"bootstrap.servers": server.address, "log_level": 4})
            admin.delete_topics([name], operation_timeout=30)[name].result(60)

    def create_topic(
        self, server: Server | Cluster, flush: Flush, partitions: int = 1, replicas: int = 1
    ) -> str:
        """The name of a new topic that stays as long as its server."""
        name = f"bench-{next(self._names)}"
        admin = AdminClient({"bootstrap.servers": server.address, "log_level": 4})
        config = server.peer.topic_config(flush)
        topic = NewTopic(
            name, num_partitions=partitions, replication_factor=replicas, config=config
        )
        admin.create_topics([topic], operation_timeout=30)[name].result(60)
        return name

    def subject(self) -> Peer:
        return next(peer for peer in self.peers if peer.name == SUBJECT)

    def guest(self, name: str) -> Peer | None:
        """Whether the peer is available."""
        return next((peer for peer in self.guests if peer.name == name), None)

    def in_turn(self, rounds: int) -> Iterator[Peer]:
        """Peers A B, B A, A B ...: all of them each round, none always first."""
        for index in range(rounds):
            yield from self.peers if index % 2 == 0 else reversed(self.peers)

    def needs_warming(self, server: Server, kind: str) -> bool:
        """True once for each server and kind of load."""
        key = (f"{server.peer.name}:{server.port}", kind)
        known = key in self._warm
        self._warm.add(key)
        return not known

    def new_directory(self, peer: Peer) -> Path:
        return self.directory / f"{peer.name}-{next(self._names)}"

    def close(self) -> None:
        for server in self._servers.values():
            server.stop()


def wait_until_ready(server: Server, brokers: int = 1) -> None:
    """Returns once metadata lists that many brokers."""
    server.wait_until_listening()
    deadline = time.perf_counter() + READY_SECONDS_MAX
    while time.perf_counter() < deadline:
        # A client that found none asks again only much later, so use a new client each time.
        admin = AdminClient({"bootstrap.servers": server.address, "log_level": 0})
        try:
            if len(admin.list_topics(timeout=10).brokers) >= brokers:
                return
        except KafkaException:
            continue
    raise TimeoutError(f"{server.peer.name} is not ready")


def run_load(module: str, *words: str, **arguments: object) -> Outcome:
    """Runs a load in a process of its own and returns what it reports."""
    command = load_command(module, *words, **arguments)
    try:
        ended = subprocess.run(
            command,
            cwd=SOURCE,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=LOAD_SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise LoadFailed(f"{module} did not end in {LOAD_SECONDS_MAX:g} s") from error
    if ended.returncode:
        raise LoadFailed(f"{module} failed: {ended.stderr[-2_000:]}")
    outcome: Outcome = json.loads(ended.stdout.splitlines()[-1])
    return outcome


def run_measured_load(server: Server | Cluster, module: str, **arguments: object) -> Outcome:
    """Like `run_load`, plus the processor seconds of all brokers per GB of payload."""
    before = _processor_seconds(server)
    outcome = run_load(module, address=server.address, **arguments)
    used = _processor_seconds(server) - before
    return outcome | {"processor_seconds_per_gigabyte": used / outcome["bytes"] * 1e9}


def _processor_seconds(server: Server | Cluster) -> float:
    pids = server.pids if isinstance(server, Cluster) else [server.pid]
    return sum(map(processes.processor_seconds, pids))


def load_command(module: str, *words: str, **arguments: object) -> list[str]:
    options = [f"--{name.replace('_', '-')}={value}" for name, value in arguments.items()]
    return [sys.executable, "-m", f"benchmarks.loads.{module}", *words, *options]
