"""Stalled clients: workers that were paused, and producers whose cluster was restarted.

    python -m tests.cluster.faults.pauses --rounds 5
    python -m tests.cluster.faults.pauses --pauses-at localhost:9092  # Apache Kafka too

A transactional worker is paused at a stage of its transaction for longer than its transaction and
its session last. At any stage, it must then either continue by itself or raise an error that says
it cannot. Then all three nodes are killed and restarted, several times; every partition must accept
records again soon after the last node serves.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from random import Random
from typing import Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic
from tests.cluster.faults.workload import RECOVERY
from tests.cluster.processes import ClusterProcesses, wait_until

STAGES: Final = ("idle", "begun", "queued", "flushed", "offsets")
PARTITIONS: Final = 6
TRANSACTION_TIMEOUT_MS: Final = 10_000
PAUSE_S: Final = 25.0
PATIENCE_S: Final = 60.0  # The machine may be busy; librdkafka's minimum is 30 s.
GAP_S_MAX: Final = 20.0


class Worker:
    """Reads `in` and writes `out` in transactions; stops itself at a stage of the third."""

    def __init__(self, bootstrap: str, stage: str) -> None:
        name = f"pauses-{stage}-{os.getpid()}"
        common: dict[str, str | int] = {
            "bootstrap.servers": bootstrap,
            "metadata.recovery.strategy": RECOVERY,
            "log_level": 0,
        }
        self._stage = stage
        self._is_done = False
        self._count = 0
        self._producer = Producer(
            common | {"transactional.id": name, "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS}
        )
        self._consumer = Consumer(
            common
            | {
                "group.id": name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": TRANSACTION_TIMEOUT_MS,
            }
        )

    def run(self) -> str:
        """Its outcome."""
        self._producer.init_transactions(PATIENCE_S)
        self._consumer.subscribe(["in"])
        while True:
            self._pause_at("idle")
            messages = [
                message for message in self._consumer.consume(50, 0.5) if message.error() is None
            ]
            if not messages:
                continue
            try:
                self._copy(messages)
            except KafkaException as error:
                problem = error.args[0]
                if problem.fatal():
                    return f"raised {problem.name()}"
                self._producer.abort_transaction(PATIENCE_S)
                self._rewind()
                continue
            self._count += 1
            if self._is_done:
                return "went on"

    def _pause_at(self, stage: str) -> None:
        if stage == self._stage and self._count == 2 and not self._is_done:
            self._is_done = True
            os.kill(os.getpid(), signal.SIGSTOP)

    def _copy(self, messages: list[Message]) -> None:
        self._producer.begin_transaction()
        self._pause_at("begun")
        for message in messages:
            self._producer.produce("out", message.value())
        self._pause_at("queued")
        self._producer.flush(PATIENCE_S)
        self._pause_at("flushed")
        offsets = {consumed.partition() or 0: (consumed.offset() or 0) + 1 for consumed in messages}
        self._producer.send_offsets_to_transaction(
            [TopicPartition("in", *position) for position in offsets.items()],
            self._consumer.consumer_group_metadata(),
            PATIENCE_S,
        )
        self._pause_at("offsets")
        self._producer.commit_transaction(PATIENCE_S)

    def _rewind(self) -> None:
        for position in self._consumer.committed(self._consumer.assignment(), PATIENCE_S):
            position.offset = position.offset if position.offset >= 0 else OFFSET_BEGINNING
            self._consumer.seek(position)


class Feed(threading.Thread):
    """Produces to every partition of a topic in turn and records when each last acknowledged."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(daemon=True)
        self.acked_s = dict.fromkeys(range(PARTITIONS), 0.0)
        self.errors: list[KafkaError] = []
        self._topic = topic
        self._ending = threading.Event()
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "message.timeout.ms": 600_000, "log_level": 0}
        )

    def run(self) -> None:
        partition = 0
        while not self._ending.is_set():
            if len(self._producer) < 100:
                self._producer.produce(
                    self._topic, b"value", partition=partition, on_delivery=self._on_delivery
                )
                partition = (partition + 1) % PARTITIONS
            self._producer.poll(0.01)

    def end(self) -> None:
        self._ending.set()
        self.join()
        self._producer.flush(PATIENCE_S)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acked_s[message.partition() or 0] = time.monotonic()
        else:
            self.errors.append(error)


def create_topics(bootstrap: str, replicas: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    topics = [NewTopic(name, PARTITIONS, replicas) for name in ("in", "out")]
    for created in admin.create_topics(topics).values():
        created.result(PATIENCE_S)


def paused_workers(bootstrap: str) -> dict[str, str]:
    """The outcome of a paused worker, by stage."""
    command = [sys.executable, "-m", __spec__.name if __spec__ else __name__, "--bootstrap"]
    workers = {
        stage: subprocess.Popen(
            [*command, bootstrap, "--stage", stage], stdout=subprocess.PIPE, text=True
        )
        for stage in STAGES
    }
    try:
        for worker in workers.values():
            os.waitid(os.P_PID, worker.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        time.sleep(PAUSE_S)
        for worker in workers.values():
            worker.send_signal(signal.SIGCONT)
        return {stage: _outcome(worker) for stage, worker in workers.items()}
    finally:
        for worker in workers.values():
            worker.kill()
            worker.wait()


def _outcome(worker: "subprocess.Popen[str]") -> str:
    try:
        return worker.communicate(timeout=2 * PATIENCE_S)[0].strip() or "ended without a word"
    except subprocess.TimeoutExpired:
        return "stood still without a word"


def restart_all(cluster: ClusterProcesses, feed: Feed, random: Random) -> float:
    """Seconds from when the last node serves until every partition has acknowledged."""
    ids = random.sample(cluster.ids, len(cluster.ids))
    for node_id in ids:
        cluster.kill(node_id)
    time.sleep(random.random() * 3)
    started_s = time.monotonic()
    for node_id in ids:
        cluster.restart(node_id, wait=False)
    for node_id in ids:
        cluster.node(node_id).wait_until_ready()
    ready_s = time.monotonic()
    wait_until(lambda: min(feed.acked_s.values()) > started_s, "every partition acknowledged")
    return max(0.0, time.monotonic() - ready_s)


def run_pauses(directory: Path, rounds: int, random: Random) -> list[str]:
    """Returns the findings."""
    findings: list[str] = []
    with ClusterProcesses(directory) as cluster:
        cluster.wait_for_voters(1, 2, 3)
        create_topics(cluster.bootstrap, 3)
        feed = Feed(cluster.bootstrap, "in")
        feed.start()
        findings += judged(paused_workers(cluster.bootstrap))
        for number in range(rounds):
            gap_s = restart_all(cluster, feed, random)
            print(f"restart {number}: acknowledged {gap_s:.1f} s after the last node", flush=True)
            if gap_s > GAP_S_MAX:
                findings.append(f"restart {number}: nothing was acknowledged for {gap_s:.1f} s")
        feed.end()
        findings += [f"a record was refused: {error}" for error in feed.errors[:3]]
    return findings


def judged(outcomes: dict[str, str]) -> list[str]:
    for stage, outcome in outcomes.items():
        print(f"paused when {stage}: {outcome}", flush=True)
    return [
        f"the worker that was paused when {stage} {outcome}"
        for stage, outcome in outcomes.items()
        if outcome not in {"went on", "raised _FENCED"}
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 100_000)
    parser.add_argument("--pauses-at", metavar="HOST:PORT")
    parser.add_argument("--bootstrap", help=argparse.SUPPRESS)
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.stage is not None:
        print(Worker(arguments.bootstrap, arguments.stage).run(), flush=True)
        os._exit(0)  # A fenced producer's records are refused forever.
    if arguments.pauses_at is not None:
        create_topics(arguments.pauses_at, 1)
        feed = Feed(arguments.pauses_at, "in")
        feed.start()
        findings = judged(paused_workers(arguments.pauses_at))
        feed.end()
    else:
        print(f"seed {arguments.seed}", flush=True)
        directory = Path(tempfile.mkdtemp(prefix="ottla-pauses-"))
        findings = run_pauses(directory, arguments.rounds, Random(arguments.seed))
        print(f"the nodes' logs are in {directory}")
    print("\n".join(findings) or "nobody stood still")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
