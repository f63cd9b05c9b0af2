"""Kafka Streams counts words exactly once while its processes and the brokers are killed.

    python -m tests.cluster.faults.streams --minutes 3

Three nodes and two processes of an application with `group.protocol=streams` (KIP-1071). Every few
seconds one of the five is killed (SIGKILL) and restarted. At the end the count of every word must
match what was sent. Needs Maven, which resolves Kafka Streams by name, and a JDK.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Final

from benchmarks.maven import maven
from benchmarks.peers.peer import Unavailable
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.cluster.faults.workload import partition_of
from tests.cluster.processes import ClusterProcesses, wait_until

HERE: Final = Path(__file__).parent
CACHE: Final = HERE.parents[2] / "benchmarks" / ".cache" / "kafka-streams"
VERSION: Final = "4.3.1"
PROJECT: Final = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>trial</groupId><artifactId>streams</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.apache.kafka</groupId><artifactId>kafka-streams</artifactId>
    <version>{VERSION}</version>
  </dependency></dependencies>
</project>
"""
WORDS: Final = ["ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen"]
PARTITIONS: Final = 4
SETTLE_S: Final = 300.0
NODE_SETTINGS: Final = (
    *("--set", "min.insync.replicas=2"),
    *("--set", "group.streams.min.session.timeout.ms=6000"),
    *("--set", "group.streams.session.timeout.ms=6000"),
    *("--set", "group.streams.min.heartbeat.interval.ms=1000"),
    *("--set", "group.streams.heartbeat.interval.ms=1000"),
    *("--set", "transaction.state.log.num.partitions=5"),
    *("--set", "offsets.topic.num.partitions=5"),
)


class Application:
    """One process of the application."""

    def __init__(self, directory: Path, classes: Path, bootstrap: str) -> None:
        directory.mkdir()
        self._log = directory / "log"
        class_path = f"{classes}:{CACHE}/*"
        program = ("StreamsCounts", bootstrap, str(directory / "state"))
        self._command = ("java", "-cp", class_path, *program)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class StreamsTrial:
    def __init__(self, directory: Path, seed: int) -> None:
        self._directory = directory
        self._random = Random(seed)
        self.kills: Counter[str] = Counter()
        self.sent: Counter[str] = Counter()
        self.counted: dict[str, int] = {}

    def run(self, seconds: float) -> list[str]:
        classes = self._compiled()
        with ExitStack() as stack:
            cluster = stack.enter_context(ClusterProcesses(self._directory, 3, *NODE_SETTINGS))
            cluster.wait_for_voters(1, 2, 3)
            _create_topics(cluster.bootstrap)
            applications = [
                Application(self._directory / f"application-{number}", classes, cluster.bootstrap)
                for number in range(2)
            ]
            for application in applications:
                stack.callback(application.kill)
                application.start()
            self._send(cluster.bootstrap, 200)
            wait_until(lambda: self._count(cluster.bootstrap), "the first counts")
            end_s = time.monotonic() + seconds
            while time.monotonic() < end_s:
                self._send(cluster.bootstrap, 200)
                self._disturb(cluster, applications)
            self._settle(cluster.bootstrap)
        return [
            f"{word}: {self.counted.get(word)} counted, {count} sent"
            for word, count in sorted(self.sent.items())
            if self.counted.get(word) != count
        ]

    def _compiled(self) -> Path:
        if shutil.which("javac") is None:
            raise Unavailable("javac, which compiles the application, is not installed")
        if not CACHE.exists():
            CACHE.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=CACHE.parent) as project:
                Path(project, "pom.xml").write_text(PROJECT)
                goal = ("dependency:copy-dependencies", "-DoutputDirectory=jars")
                maven(*goal, directory=Path(project))
                Path(project, "jars").rename(CACHE)
        classes = self._directory / "classes"
        source = str(HERE / "StreamsCounts.java")
        subprocess.run(["javac", "-cp", f"{CACHE}/*", "-d", classes, source], check=True)
        return classes

    def _send(self, bootstrap: str, lines: int) -> None:
        producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        for _ in range(lines):
            words = self._random.choices(WORDS, k=5)
            self.sent.update(words)
            producer.produce("lines", " ".join(words))
        left = producer.flush(120)
        assert not left, f"{left} lines were not acknowledged"

    def _disturb(self, cluster: ClusterProcesses, applications: list[Application]) -> None:
        time.sleep(self._random.uniform(1.0, 8.0))
        if self._random.random() < 0.5:
            self.kills["application"] += 1
            application = self._random.choice(applications)
            application.kill()
            application.start()
        else:
            self.kills["broker"] += 1
            node_id = self._random.choice(cluster.ids)
            cluster.kill(node_id)
            cluster.restart(node_id)
        print(self.summary(), flush=True)

    def _settle(self, bootstrap: str) -> None:
        deadline_s = time.monotonic() + SETTLE_S
        while self._count(bootstrap) != self.sent and time.monotonic() < deadline_s:
            time.sleep(2)

    def _count(self, bootstrap: str) -> dict[str, int]:
        """The committed contents of `counts`."""
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": "looking",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
        consumer = Consumer(settings)
        found: dict[str, int] = {}
        ended: set[int] = set()
        try:
            consumer.subscribe(["counts"])
            while len(ended) < PARTITIONS:
                message = consumer.poll(30)
                if message is None:
                    break
                if message.error() is not None:
                    ended.add(partition_of(message).partition)
                    continue
                key, value = message.key(), message.value()
                assert key is not None
                assert value is not None
                found[key.decode()] = int(value)
        finally:
            consumer.close()
        self.counted = found
        return found

    def summary(self) -> str:
        killed = f"{self.kills['application']} applications and {self.kills['broker']} brokers"
        return f"{killed} killed, {sum(self.sent.values())} words sent"


def _create_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [NewTopic(name, PARTITIONS, 3) for name in ("lines", "counts")]
    for future in admin.create_topics(topics).values():
        future.result(60)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 100_000)
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    directory = Path(tempfile.mkdtemp(prefix="ottla-streams-"))
    trial = StreamsTrial(directory, arguments.seed)
    try:
        findings = trial.run(arguments.minutes * 60)
    except Unavailable as reason:
        print(f"left out: {reason}")
        return 0
    print(f"the logs are in {directory}")
    print(trial.summary())
    print("\n".join(findings) or "every word was counted once")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
