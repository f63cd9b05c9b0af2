"""Stalled connections against a busy cluster: other clients must still be served.

    python -m tests.cluster.faults.stalled --seconds 20

attacks every node of a cluster with each kind of stalled connection in turn, while clients write
and read. During each attack every node must keep answering small requests, records must be
acknowledged by all replicas, and the controller must accept a change, which needs voters and
brokers to communicate.
"""

import argparse
import contextlib
import selectors
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient
from tests.broker_process import METADATA_REQUEST
from tests.cluster.clients import create_topic
from tests.cluster.faults.checker import check, check_group
from tests.cluster.faults.contents import read_topic
from tests.cluster.faults.history import History
from tests.cluster.faults.trial import end_all, reach_none, wait_for_in_sync
from tests.cluster.faults.workload import Reader, Worker, Writer
from tests.cluster.processes import ClusterProcesses, wait_until
from tests.ports import HOST

TOPIC: Final = "records"
PARTITIONS: Final = 3
ANSWERS_MIN: Final = 20  # From each node, in each attack.
ACKED_MIN: Final = 200
ANSWER_TIMEOUT_S: Final = 240.0
RECONNECT_S: Final = 0.5
DRIP_S: Final = 0.2
API_VERSIONS_REQUEST: Final = bytes.fromhex("0000000a 0012 0000 00000001 ffff")
CHUNK: Final = bytes(1 << 20)


@dataclass(frozen=True)
class Attack:
    """What each of `count` connections to a node does; closed ones are reopened."""

    name: str
    count: int
    announced_bytes: int = 0
    sent_bytes: int = 0  # Bytes of the announced request that are sent at once.
    drips: bool = False  # Then one byte from time to time.
    asks: bool = False  # Keeps sending requests and never reads.


def attacks(request_bytes: int, connections: int) -> list[Attack]:
    return [
        Attack("3 large requests that stall", 3, request_bytes, request_bytes - 1),
        Attack("announced and no more", connections, request_bytes),
        Attack("half a megabyte that stalls", connections, 1 << 20, 1 << 19),
        Attack("a byte at a time", connections, 1 << 20, drips=True),
        Attack("answers that nobody reads", connections, asks=True),
    ]


class Attackers(threading.Thread):
    """The connections of one attack to one node."""

    def __init__(self, port: int, attack: Attack) -> None:
        super().__init__(name=f"attack on {port}", daemon=True)
        self._port = port
        self._attack = attack
        self._ended = threading.Event()
        self._selector = selectors.DefaultSelector()
        self._unsent: dict[socket.socket, int] = {}

    def end(self) -> None:
        self._ended.set()
        self.join()

    def run(self) -> None:
        connect_at = drip_at = 0.0
        while not self._ended.is_set():
            now = time.monotonic()
            if now >= connect_at:
                connect_at = now + RECONNECT_S
                self._connect_all()
            for key, _ in self._selector.select(DRIP_S):
                self._send(key.fileobj)  # type: ignore[arg-type]
            if self._attack.drips and now >= drip_at:
                drip_at = now + DRIP_S
                for connected in list(self._unsent):
                    self._try(connected, lambda peer: peer.send(b"\0"))
        for connected in list(self._unsent):
            self._forget(connected)
        self._selector.close()

    def _connect_all(self) -> None:
        attack = self._attack
        with contextlib.suppress(OSError):
            while len(self._unsent) < attack.count and not self._ended.is_set():
                connected = socket.create_connection((HOST, self._port), timeout=ANSWER_TIMEOUT_S)
                connected.setblocking(False)
                if not attack.asks:
                    connected.send(struct.pack(">I", attack.announced_bytes))
                self._unsent[connected] = attack.sent_bytes
                if attack.sent_bytes or attack.asks:
                    self._selector.register(connected, selectors.EVENT_WRITE)

    def _send(self, connected: socket.socket) -> None:
        if self._attack.asks:
            self._try(connected, lambda peer: peer.send(API_VERSIONS_REQUEST * 500))
            return
        unsent = self._unsent[connected]
        sent = self._try(connected, lambda peer: peer.send(memoryview(CHUNK)[:unsent]))
        if connected in self._unsent:
            self._unsent[connected] = unsent - sent
            if unsent == sent:
                self._selector.unregister(connected)

    def _try(self, connected: socket.socket, act: Callable[[socket.socket], int]) -> int:
        try:
            return act(connected)
        except BlockingIOError:
            return 0
        except OSError:
            self._forget(connected)
            return 0

    def _forget(self, connected: socket.socket) -> None:
        self._unsent.pop(connected, None)
        with contextlib.suppress(KeyError):
            self._selector.unregister(connected)
        connected.close()


class Probe(threading.Thread):
    """Requests metadata from one node repeatedly on one connection."""

    def __init__(self, port: int) -> None:
        super().__init__(name=f"probe of {port}", daemon=True)
        self._port = port
        self._ended = threading.Event()
        self.answers_count = 0
        self.worst_s = 0.0
        self.problems: list[str] = []

    def end(self) -> None:
        self._ended.set()
        self.join()

    def run(self) -> None:
        try:
            with socket.create_connection((HOST, self._port), timeout=ANSWER_TIMEOUT_S) as asking:
                while not self._ended.wait(0.02):
                    begin = time.monotonic()
                    asking.sendall(METADATA_REQUEST)
                    _receive(asking, struct.unpack(">I", _receive(asking, 4))[0])
                    self.answers_count += 1
                    self.worst_s = max(self.worst_s, time.monotonic() - begin)
        except OSError as error:
            self.problems.append(f"{self.name}: an answer is missing: {error!r}")


def _receive(connected: socket.socket, size: int) -> bytes:
    data = connected.recv(size, socket.MSG_WAITALL)
    if len(data) < size:
        raise ConnectionError("closed")
    return data


@dataclass
class Outcome:
    lines: list[str] = field(default_factory=list)
    acked_count: int = 0
    findings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        count = f"{len(self.findings)} findings"
        acked = f"{self.acked_count} records acknowledged"
        return "\n".join([*self.lines, acked, count, *self.findings])


class Stalled:
    """`arguments` are for every `ottla serve`."""

    def __init__(
        self, directory: Path, *arguments: str, say: Callable[[str], None] = lambda _: None
    ) -> None:
        self._directory = directory
        self._arguments = arguments
        self._say = say
        self._history = History()
        self._outcome = Outcome()

    def run(self, kinds: list[Attack], seconds: float) -> Outcome:
        """Each attack lasts this long, and until everyone has had enough answers."""
        with ClusterProcesses(self._directory, 3, *self._arguments) as cluster:
            cluster.wait_for_voters(1, 2, 3)
            create_topic(cluster, TOPIC, PARTITIONS)
            admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
            wait_for_in_sync(admin)
            workers: list[Worker] = [
                Writer(
                    "writer", self._history, cluster.bootstrap, TOPIC, PARTITIONS, idempotent=True
                ),
                Reader("reader", self._history, cluster.bootstrap, "readers", TOPIC),
            ]
            for worker in workers:
                worker.start()
            for number, attack in enumerate(kinds):
                self._attack(cluster, attack, f"during-{number}", seconds)
            end_all(workers[:1])
            records = read_topic(cluster.bootstrap, TOPIC, PARTITIONS)
            reach_none(lambda: check_group(self._history, records))
            end_all(workers)
            self._outcome.findings += check(self._history, records)
            self._outcome.findings += check_group(self._history, records)
            self._outcome.acked_count = self._history.acked_count
        return self._outcome

    def _attack(
        self, cluster: ClusterProcesses, attack: Attack, topic: str, seconds: float
    ) -> None:
        ports = [cluster.node(node_id).port for node_id in cluster.ids]
        attackers = [Attackers(port, attack) for port in ports]
        probes = [Probe(port) for port in ports]
        with _running(attackers), _running(probes):
            end = time.monotonic() + seconds
            acked_before = self._history.acked_count
            wait_until(lambda: time.monotonic() >= end)
            create_topic(cluster, topic, PARTITIONS)
            wait_until(
                lambda: self._history.acked_count >= acked_before + ACKED_MIN, "acknowledgements"
            )
            wait_until(
                lambda: all(
                    probe.problems or probe.answers_count >= ANSWERS_MIN for probe in probes
                ),
                "answers",
            )
            acked = self._history.acked_count - acked_before
        line = (
            f"{attack.name}, {attack.count} connections to each node: "
            f"{sum(probe.answers_count for probe in probes)} answers, the slowest after "
            f"{max(probe.worst_s for probe in probes):.2f} s; {acked} records acknowledged"
        )
        self._say(line)
        self._outcome.lines.append(line)
        self._outcome.findings += [problem for probe in probes for problem in probe.problems]


@contextlib.contextmanager
def _running(threads: "list[Attackers] | list[Probe]") -> Iterator[None]:
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.end()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--connections", type=int, default=1_000)
    parser.add_argument("--request-bytes", type=int, default=100_000_000)
    arguments = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="ottla-stalled-"))
    trial = Stalled(directory, say=lambda text: print(text, flush=True))
    outcome = trial.run(attacks(arguments.request_bytes, arguments.connections), arguments.seconds)
    print(outcome)
    print(f"the nodes' logs are in {directory}")
    return 1 if outcome.findings else 0


if __name__ == "__main__":
    sys.exit(main())
