"""Nodes as processes of the demonstration, which they do not outlive."""

import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Self

from ottla.cli.child_nodes import PATIENT, child_command
from ottla.cli.errors import CommandError, ExitCode
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.errors import WireError
from ottla.client.wire.nodes import QUORUM_REQUEST
from ottla.client.wire.topics import ensure_topic
from ottla.network.held_port import HOST, HeldPort

NODES = 3
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 30.0
_ANSWER_TIMEOUT_MS = 5_000
_PAUSE_S = 0.05
_LOG_CHARACTERS_SHOWN = 600


class DemoCluster:
    """`interrupted` ends every wait."""

    def __init__(self, directory: Path, interrupted: threading.Event, nodes: int = NODES) -> None:
        self._directory = directory
        self._interrupted = interrupted
        self._ports = {node_id: HeldPort() for node_id in range(1, nodes + 1)}
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left, whatever state they are in."""
        for process in self._processes.values():
            process.terminate()
        deadline = time.monotonic() + STOP_TIMEOUT_S
        for process in self._processes.values():
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for held in self._ports.values():
            held.release()

    @property
    def bootstrap(self) -> str:
        return ",".join(map(self.address, self._ports))

    @property
    def node_ids(self) -> list[int]:
        return list(self._ports)

    def address(self, node_id: int) -> str:
        return f"{HOST}:{self._ports[node_id].number}"

    def pid(self, node_id: int) -> int | None:
        """None of one that is down."""
        process = self._processes.get(node_id)
        return None if process is None or process.poll() is not None else process.pid

    def start(self, node_id: int) -> None:
        """Without waiting for it."""
        arguments = ["--id", str(node_id), "--host", HOST]
        arguments += ["--port", str(self._ports[node_id].number)]
        arguments += ["--data", str(self._directory / f"node-{node_id}")]
        if node_id > 1:
            arguments += ["--join", self.address(1), *PATIENT]
        with self._log(node_id).open("ab") as log:
            self._processes[node_id] = subprocess.Popen(
                child_command("serve", *arguments),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the demonstration, which then stops them.
            )

    def kill(self, node_id: int) -> None:
        process = self._processes[node_id]
        process.send_signal(signal.SIGKILL)
        process.wait()

    def wait_until_ready(self, topic: str, partitions: int) -> None:
        """Until all of them vote, so that any of them may go, and the topic is there."""
        deadline = time.monotonic() + START_TIMEOUT_S
        with self.client() as cluster:
            while _voters_count(cluster) < NODES:
                self._validate_running()
                if self._interrupted.wait(_PAUSE_S):
                    raise CommandError("interrupted", ExitCode.INTERRUPTED)
                if time.monotonic() > deadline:
                    raise CommandError(f"the nodes do not start:\n{self._last_lines(1)}")
            config = {"min.insync.replicas": "2"}
            ensure_topic(
                cluster, topic, partitions=partitions, replication_factor=NODES, config=config
            )

    def client(self) -> Cluster:
        return Cluster(
            self.bootstrap,
            client_id="ottla-demo",
            request_timeout_ms=_ANSWER_TIMEOUT_MS,
            retry_timeout_ms=_ANSWER_TIMEOUT_MS,
        )

    def _validate_running(self) -> None:
        for node_id, process in self._processes.items():
            if process.poll() is not None:
                raise CommandError(f"node {node_id} has ended:\n{self._last_lines(node_id)}")

    def _log(self, node_id: int) -> Path:
        return self._directory / f"node-{node_id}.log"

    def _last_lines(self, node_id: int) -> str:
        return self._log(node_id).read_text(errors="replace")[-_LOG_CHARACTERS_SHOWN:]


def _voters_count(cluster: Cluster) -> int:
    try:
        response = cluster.controller().call(QUORUM_REQUEST)
    except WireError:
        cluster.forget()
        return 0
    partitions = (partition for topic in response.topics for partition in topic.partitions)
    return max((len(partition.current_voters) for partition in partitions), default=0)
