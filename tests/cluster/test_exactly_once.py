"""Consume, process, produce while brokers are killed one after another: each record once."""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import IsolationLevel, KafkaException
from tests.clients.client import Sent
from tests.clients.confluent_client import ConfluentClient
from tests.clients.test_exactly_once import PARTITIONS, SINK, SOURCE, Worker
from tests.cluster.clients import (
    LOOK_TIMEOUTS_S,
    TRANSACTION,
    coordinator,
    create_topic,
    end_offsets,
    leaders,
    read_committed,
)
from tests.cluster.conftest import StartCluster
from tests.cluster.processes import ClusterProcesses

pytestmark = pytest.mark.process

COUNT = 50
STALLED_S = 30  # Longer than librdkafka takes to find the new leaders and coordinators.
LOOK_INTERVAL_S = 0.2
COPIER = f"{SOURCE}-copier"  # The worker's group and transactional id.
PLACES = [(SINK, index) for index in range(PARTITIONS)]

VICTIMS: dict[str, Callable[[ClusterProcesses], int]] = {
    "the coordinator of the group": lambda cluster: coordinator(cluster, COPIER),
    "the coordinator of transactions": lambda cluster: coordinator(cluster, COPIER, TRANSACTION),
    "a leader": lambda cluster: leaders(cluster, SINK)[0],
}


@pytest.fixture
def cluster(start_cluster: StartCluster) -> ClusterProcesses:
    cluster = start_cluster(3)
    cluster.wait_for_voters(1, 2, 3)
    for topic in (SOURCE, SINK):
        create_topic(cluster, topic, PARTITIONS)
    return cluster


@pytest.fixture
def worker(cluster: ClusterProcesses, tmp_path: Path) -> Iterator[Worker]:
    log = tmp_path / "worker.log"
    worker = Worker(cluster.bootstrap, log, STALLED_S)
    yield worker
    worker.kill()
    print(log.read_text())


class Copying:
    """The worker's progress; markers count like records."""

    def __init__(self, cluster: ClusterProcesses, worker: Worker) -> None:
        self._cluster = cluster
        self._worker = worker
        self._reached = 0
        self._timeouts_s = itertools.cycle(LOOK_TIMEOUTS_S)

    def reach(self, end_offset: int) -> None:
        while self._reached < end_offset:
            self.look()

    def look(self) -> None:
        time.sleep(LOOK_INTERVAL_S)
        try:
            found = end_offsets(
                self._cluster, PLACES, IsolationLevel.READ_UNCOMMITTED, next(self._timeouts_s)
            )
        except KafkaException:
            pass  # A leader moves.
        else:
            self._reached = max(self._reached, sum(found.values()))
        self._worker.keep_running(self._reached)


def test_each_record_is_copied_once_whoever_is_killed(
    cluster: ClusterProcesses, worker: Worker
) -> None:
    copying = Copying(cluster, worker)
    produced = 0
    for find_victim in VICTIMS.values():
        produce(cluster, range(produced, produced + COUNT))
        copying.reach(produced + COUNT // 10)
        victim = find_victim(cluster)
        cluster.kill(victim)
        produce(cluster, range(produced + COUNT, produced + 2 * COUNT))
        produced += 2 * COUNT
        copying.reach(produced)
        cluster.restart(victim)
    found: list[bytes] = []
    while len(found) < produced:
        copying.look()
        found = [value for values in read_committed(cluster, PLACES).values() for value in values]
    assert sorted(map(int, found)) == list(range(produced))


def produce(cluster: ClusterProcesses, numbers: Iterable[int]) -> None:
    sent = [Sent(value=b"%d" % number, partition=number % PARTITIONS) for number in numbers]
    ConfluentClient(cluster.bootstrap).produce(SOURCE, sent)
