"""Nodes on a machine with a busy disk and busy cores: none may be declared dead.

    python -m tests.cluster.faults.slow_machine --seconds 120 [--writers 6] [--busy 4] [--sync-ms 0]

Three nodes, with clients at work, share a filesystem with processes that keep writing and syncing,
and their cores with processes that only compute. If the disk is too fast for that to matter, each
sync of a node is delayed by a random time. Configs are changed all the time, so that the quorum has
something to sync. No node fails, so every new quorum epoch and every leader change is one too many.
"""

import argparse
import multiprocessing
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)
from kio.schema.metadata.v12.request import MetadataRequest
from tests.clients.wire import Wire
from tests.cluster.clients import changed
from tests.cluster.faults.history import History
from tests.cluster.faults.trial import wait_for_in_sync
from tests.cluster.faults.workload import Writer
from tests.cluster.processes import ClusterProcesses, wait_until

TOPIC: Final = "records"
PARTITIONS: Final = 30
REPLICAS: Final = 3
CLIENTS: Final = 2
WRITE_BYTES: Final = 1 << 20
FILE_BYTES: Final = 64 << 20
LOOK_INTERVAL_S: Final = 1.0
CHANGE_INTERVAL_S: Final = 0.2
RETENTION_MS: Final = 600_000_000
ELECTIONS_MAX: Final = 1  # What a slow machine may cost.
_CONTEXT: Final = multiprocessing.get_context("forkserver")


@dataclass
class Outcome:
    seconds: float
    quorum_epochs: int = 0  # More than there were before.
    leader_moves: int = 0  # Of partitions.
    acked_count: int = 0
    changes_count: int = 0  # Of configs.
    sync_ms: list[float] = field(default_factory=list)  # Duration of a small sync meanwhile.
    findings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        took = sorted(self.sync_ms) or [0.0]
        lines = [
            f"{self.seconds:.0f} s, {self.acked_count} records acknowledged, "
            f"{self.changes_count} configs changed",
            f"a sync of 4 KB took {took[len(took) // 2]:.0f} ms (median), {took[-1]:.0f} ms (most)",
            f"{self.quorum_epochs} quorum epochs, {self.leader_moves} leaders moved",
            *self.findings,
        ]
        return "\n".join(lines)


@dataclass(frozen=True)
class Load:
    writers: int  # Processes that write and sync.
    busy: int  # Processes that compute.
    sync_ms: int  # Average delay added to each sync of a node.


def run(directory: Path, seconds: float, load: Load, *arguments: str) -> Outcome:
    """`arguments` are for every `ottla serve`."""
    outcome = Outcome(seconds)
    setting = directory / "sync-ms"
    program = ("tests.cluster.faults.slow_syncs", str(setting))
    with ClusterProcesses(directory, 3, *arguments, program=program) as cluster:
        cluster.wait_for_voters(1, 2, 3)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        created = admin.create_topics([NewTopic(TOPIC, PARTITIONS, REPLICAS)])[TOPIC]
        changed(created, KafkaError.TOPIC_ALREADY_EXISTS)
        wait_for_in_sync(admin)
        history = History()
        clients = [
            Writer(
                f"writer-{number}", history, cluster.bootstrap, TOPIC, PARTITIONS, idempotent=True
            )
            for number in range(CLIENTS)
        ]
        epoch, leader_epochs = _quorum_epoch(cluster), _leader_epochs(cluster)
        for client in clients:
            client.start()
        with _loaded(directory, load), _changes(admin) as changes:
            setting.write_text(str(load.sync_ms))
            outcome.sync_ms = _measure_syncs(directory / "probe", seconds)
            setting.unlink()
        outcome.changes_count = len(changes)
        outcome.quorum_epochs = _quorum_epoch(cluster) - epoch
        outcome.leader_moves = _leader_epochs(cluster) - leader_epochs
        for client in clients:
            client.ask_to_end()
        for client in clients:
            client.join()
        outcome.acked_count = history.acked_count
        outcome.findings = list(history.problems)
    if outcome.quorum_epochs > ELECTIONS_MAX:
        outcome.findings.append(
            f"{outcome.quorum_epochs} elections of a quorum that nobody disturbed"
        )
    if outcome.leader_moves > ELECTIONS_MAX * PARTITIONS:
        outcome.findings.append(f"{outcome.leader_moves} leaders moved that nobody disturbed")
    return outcome


@contextmanager
def _loaded(directory: Path, load: Load) -> Iterator[None]:
    processes: list[ForkServerProcess] = [
        *(
            _CONTEXT.Process(target=_write, args=(str(directory / f"load-{number}"),), daemon=True)
            for number in range(load.writers)
        ),
        *(_CONTEXT.Process(target=_compute, daemon=True) for _ in range(load.busy)),
    ]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.join()


@contextmanager
def _changes(admin: AdminClient) -> Iterator[list[int]]:
    """Changes configs one after another; the list has the acknowledged ones."""
    made: list[int] = []
    stopping = threading.Event()

    def change() -> None:
        while not stopping.wait(CHANGE_INTERVAL_S):
            value = str(RETENTION_MS + len(made))
            entry = ConfigEntry("retention.ms", value, incremental_operation=AlterConfigOpType.SET)
            resource = ConfigResource("topic", TOPIC, incremental_configs=[entry])
            with suppress(KafkaException):
                admin.incremental_alter_configs([resource])[resource].result()
                made.append(len(made))

    changer = threading.Thread(target=change, daemon=True)
    changer.start()
    try:
        yield made
    finally:
        stopping.set()
        changer.join()


def _write(path: str) -> None:
    data = random.randbytes(WRITE_BYTES)
    with Path(path).open("wb", buffering=0) as file:
        while True:
            file.write(data)
            os.fdatasync(file.fileno())
            if file.tell() >= FILE_BYTES:
                file.seek(0)
                file.truncate()


def _compute() -> None:
    while True:
        sum(range(10_000))


def _measure_syncs(path: Path, seconds: float) -> list[float]:
    end = time.monotonic() + seconds
    took_ms = []
    with path.open("wb", buffering=0) as file:
        while (begin := time.monotonic()) < end:
            file.write(bytes(4096))
            os.fdatasync(file.fileno())
            took_ms.append((time.monotonic() - begin) * 1000)
            time.sleep(LOOK_INTERVAL_S)
    return took_ms


def _quorum_epoch(cluster: ClusterProcesses) -> int:
    wait_until(lambda: cluster.describe(check=False).error_code == 0, "a leader of the quorum")
    return int(cluster.quorum().leader_epoch)


def _leader_epochs(cluster: ClusterProcesses) -> int:
    """Summed over all partitions: each leader change adds one."""
    with Wire(cluster.bootstrap_of(cluster.running[0])) as wire:
        response: Any = wire.call(
            MetadataRequest(topics=None, include_topic_authorized_operations=False)
        )
    return sum(
        int(partition.leader_epoch) for topic in response.topics for partition in topic.partitions
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--writers", type=int, default=6)
    parser.add_argument("--busy", type=int, default=4)
    parser.add_argument("--sync-ms", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="ottla-slow-machine-"))
    settings = (word for setting in arguments.set for word in ("--set", setting))
    load = Load(arguments.writers, arguments.busy, arguments.sync_ms)
    outcome = run(directory, arguments.seconds, load, *settings)
    print(outcome)
    print(f"the nodes' logs are in {directory}")
    return 1 if outcome.findings else 0


if __name__ == "__main__":
    sys.exit(main())
