"""Consume, process, produce: each record once, whatever is killed on the way."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from tests.broker_process import BrokerProcess
from tests.clients.client import TIMEOUT_S, Sent
from tests.clients.confluent_client import ConfluentClient
from tests.clients.transactional import values

pytestmark = pytest.mark.process

WORKER = Path(__file__).parent / "copying_worker.py"
PARTITIONS = 2
COUNT = 400
STALLED_S = 30  # Longer than a process takes to start and join, and its predecessor to time out.
SOURCE, SINK = "source", "sink"


class Worker:
    """The copying process, replaced when it was killed or gave up."""

    def __init__(self, bootstrap: str, log: Path, stalled_s: float = STALLED_S) -> None:
        self._stalled_s = stalled_s
        self._command = [sys.executable, str(WORKER), bootstrap, SOURCE, SINK]
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._progress = -1
        self._moved_s = time.monotonic()

    def keep_running(self, progress: int) -> None:
        """A stalled process is killed, too: librdkafka may hang when a broker is lost.

        Its producer then waits for a coordinator whose connection it has given up, or its static
        consumer has fenced itself.
        """
        if progress != self._progress:
            self._progress, self._moved_s = progress, time.monotonic()
        elif time.monotonic() - self._moved_s > self._stalled_s:
            self.kill()
        if self._process is None or self._process.poll() is not None:
            self._moved_s = time.monotonic()
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class Progress:
    """The end of the sink, counting records and markers."""

    def __init__(self, bootstrap: str) -> None:
        config = {"bootstrap.servers": bootstrap, "group.id": "unused", "log_level": 0}
        self._consumer = Consumer(config)

    def end_offset(self) -> int:
        return sum(map(self._end_offset, range(PARTITIONS)))

    def _end_offset(self, partition: int) -> int:
        topic_partition = TopicPartition(SINK, partition)
        while True:
            try:
                return int(
                    self._consumer.get_watermark_offsets(topic_partition, timeout=TIMEOUT_S)[1]
                )
            except KafkaException:
                continue  # The broker is not there at this moment.


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path) as process:
        yield process


@pytest.fixture
def worker(broker: BrokerProcess, tmp_path: Path) -> Iterator[Worker]:
    worker = Worker(broker.bootstrap, tmp_path / "worker.log")
    yield worker
    worker.kill()


@pytest.mark.parametrize("victim", ["worker", "broker"])
def test_each_record_is_copied_once(broker: BrokerProcess, worker: Worker, victim: str) -> None:
    client = ConfluentClient(broker.bootstrap)
    for topic in (SOURCE, SINK):
        client.create_topic(topic, PARTITIONS)
    sent = [Sent(value=b"%d" % number, partition=number % 2) for number in range(COUNT)]
    client.produce(SOURCE, sent)
    progress = Progress(broker.bootstrap)
    for milestone in (20, 120, 250):
        while (reached := progress.end_offset()) < milestone:
            worker.keep_running(reached)
        if victim == "worker":
            worker.kill()
        else:
            broker.kill()
            broker.start()
    while len(found := copied(broker.bootstrap)) < COUNT:
        worker.keep_running(progress.end_offset())
    assert sorted(map(int, found)) == list(range(COUNT))


def copied(bootstrap: str) -> list[bytes]:
    return [value for index in range(PARTITIONS) for value in values(bootstrap, SINK, index)]
