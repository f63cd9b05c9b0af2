"""Nodes that stay away for long: the others' memory must not grow with time.

    python -m tests.cluster.faults.absence --minutes 60 --gone 1

starts three nodes, kills one or two of them for good and samples the memory of the others every few
seconds, with a light client at work (which cannot write if two are gone). It fails if a survivor's
memory grows by more than 10 MB after the warm-up, or if it logs more than a few lines a minute.
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, Producer
from tests.cluster.clients import create_topic
from tests.cluster.faults.workload import RECOVERY
from tests.cluster.processes import ClusterProcesses

NODES: Final = 3
TOPIC: Final = "absence"
PARTITIONS: Final = 3
SAMPLE_S: Final = 3.0
WARM_UP_SHARE: Final = 0.2
WARM_UP_S_MAX: Final = 300.0
GROWTH_BYTES_MAX: Final = 10 << 20
LINES_PER_MINUTE_MAX: Final = 20.0
LINES_FREE: Final = 20  # For short trials, where a few lines make a high rate.
SAY_S: Final = 60.0
RECORD_INTERVAL_S: Final = 0.1
RECORD_BYTES: Final = 200


@dataclass
class Survivor:
    """The memory and log lines of a node that stayed, sampled after the warm-up."""

    node_id: int
    resident_bytes: list[int] = field(default_factory=list)
    lines_before: int = 0
    lines: int = 0

    @property
    def growth_bytes(self) -> int:
        return max(self.resident_bytes) - self.resident_bytes[0]

    def findings(self, minutes: float) -> list[str]:
        found = []
        if self.growth_bytes > GROWTH_BYTES_MAX:
            found.append(f"the memory of node {self.node_id} rose by {_mb(self.growth_bytes)}")
        if self.lines > LINES_FREE + LINES_PER_MINUTE_MAX * minutes:
            found.append(f"node {self.node_id} logged {self.lines} lines in {minutes:.1f} min")
        return found


@dataclass
class Outcome:
    gone: list[int]
    minutes: float = 0.0  # Since the warm-up.
    survivors: list[Survivor] = field(default_factory=list)
    acked_count: int = 0
    read_count: int = 0
    findings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        nodes = [
            f"node {survivor.node_id}: {_mb(survivor.resident_bytes[0])} after the warm-up, "
            f"at most {_mb(max(survivor.resident_bytes))} "
            f"and {_mb(survivor.resident_bytes[-1])} at the end, "
            f"{survivor.lines} log lines"
            for survivor in self.survivors
        ]
        return "\n".join(
            [
                f"nodes {self.gone} gone for {self.minutes:.1f} min after the warm-up",
                *nodes,
                f"{self.acked_count} records acknowledged, {self.read_count} read",
                f"{len(self.findings)} findings",
                *self.findings,
            ]
        )


class _LightClient(threading.Thread):
    """Writes ten small records a second and reads them, until stopped."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(name="light client")
        self.acked_count = 0
        self.read_count = 0
        self._ended = threading.Event()
        recovery = {"metadata.recovery.strategy": RECOVERY}
        common = {"bootstrap.servers": bootstrap, "log_level": 0, **recovery}
        self._producer = Producer({**common, "acks": "all", "message.timeout.ms": 10_000})
        self._consumer = Consumer({**common, "group.id": TOPIC, "auto.offset.reset": "earliest"})

    def end(self) -> None:
        self._ended.set()
        self.join()

    def run(self) -> None:
        self._consumer.subscribe([TOPIC])
        while not self._ended.wait(RECORD_INTERVAL_S):
            self._producer.produce(TOPIC, os.urandom(RECORD_BYTES), on_delivery=self._on_delivery)
            self._producer.poll(0)
            message = self._consumer.poll(0)
            while message is not None:
                self.read_count += message.error() is None
                message = self._consumer.poll(0)
        self._producer.purge()
        self._consumer.close()

    def _on_delivery(self, error: object, _: object) -> None:
        self.acked_count += error is None


def run_absence(
    directory: Path,
    gone_count: int,
    seconds: float,
    *arguments: str,
    say: Callable[[str], None] = lambda _: None,
) -> Outcome:
    with ClusterProcesses(directory, NODES, *arguments) as cluster:
        cluster.wait_for_voters(*range(1, NODES + 1))
        create_topic(cluster, TOPIC, PARTITIONS)
        client = _LightClient(cluster.bootstrap)
        client.start()
        try:
            leader = cluster.leader()
            gone = [leader, *(each for each in cluster.ids if each != leader)][:gone_count]
            for node_id in gone:
                cluster.kill(node_id)
            outcome = Outcome(gone)
            say(f"nodes {gone} are gone; node {leader} led the quorum")
            _watch(cluster, outcome, seconds, say)
        finally:
            client.end()
        outcome.acked_count, outcome.read_count = client.acked_count, client.read_count
        _judge(outcome)
    return outcome


def _watch(
    cluster: ClusterProcesses, outcome: Outcome, seconds: float, say: Callable[[str], None]
) -> None:
    begin = time.monotonic()
    warm_at = begin + min(seconds * WARM_UP_SHARE, WARM_UP_S_MAX)
    said_at = begin
    outcome.survivors = [Survivor(node_id) for node_id in cluster.running]
    while (now := time.monotonic()) < begin + seconds or not outcome.minutes:
        for survivor in outcome.survivors:
            node = cluster.node(survivor.node_id)
            assert node.is_running, f"node {survivor.node_id} ended\n{node.log_text()[-2000:]}"
            lines = node.log_text().count("\n")
            if now < warm_at:
                survivor.lines_before = lines
            else:
                survivor.resident_bytes.append(resident_bytes(node.pid))
                survivor.lines = lines - survivor.lines_before
        if now >= warm_at:
            outcome.minutes = (now - warm_at) / 60
        if now >= said_at:
            said_at = now + SAY_S
            memory = {each: _mb(resident_bytes(cluster.node(each).pid)) for each in cluster.running}
            say(", ".join(f"node {each}: {size}" for each, size in memory.items()))
        time.sleep(SAMPLE_S)


def _judge(outcome: Outcome) -> None:
    for survivor in outcome.survivors:
        outcome.findings += survivor.findings(outcome.minutes)
    if len(outcome.gone) * 2 < NODES and not outcome.acked_count:
        outcome.findings.append("nothing was acknowledged though a majority runs")


def resident_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def _mb(size: int) -> str:
    return f"{size / (1 << 20):.1f} MB"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--gone", type=int, choices=(1, 2), default=1)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="ottla-absence-"))
    begin = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - begin:7.1f} s  {text}", flush=True)

    settings = [word for setting in arguments.set for word in ("--set", setting)]
    outcome = run_absence(directory, arguments.gone, arguments.minutes * 60, *settings, say=say)
    print(outcome)
    print(f"the nodes' logs are in {directory}")
    return 1 if outcome.findings else 0


if __name__ == "__main__":
    sys.exit(main())
