"""Dead letters of share groups reach their topic whoever leads it, and do not block groups."""

import json

import pytest
from confluent_kafka import (
    AcknowledgeType,
    Consumer,
    KafkaError,
    Producer,
    ShareConsumer,
    TopicPartition,
)
from tests.clients.test_share_groups import configured_group, share_consumer
from tests.cluster.clients import TIMEOUT_S
from tests.cluster.commands import done
from tests.cluster.conftest import StartCluster
from tests.cluster.processes import PATIENT, ClusterProcesses, wait_until
from tests.cluster.topics import create, states

pytestmark = pytest.mark.process

FEW_COORDINATORS = (
    *("--set", "offsets.topic.num.partitions=3"),
    *("--set", "share.coordinator.state.topic.num.partitions=3"),
)
PARTITIONS = 3
FEW = 60
FIRST, MORE = 6_000, 3_000  # Slightly more than three partitions can have in flight.
DEAD_LETTERS = "dlq.orders"


def produce(cluster: ClusterProcesses, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 20})
    failures: list[KafkaError] = []
    for number in numbers:
        producer.produce(
            "orders",
            str(number),
            partition=number % PARTITIONS,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    assert producer.flush(TIMEOUT_S) == 0
    assert failures == []


def reject(consumer: ShareConsumer, count: int) -> None:
    """Until that many different records are rejected; refused ones are delivered again."""
    rejected: set[bytes] = set()

    def progress() -> bool:
        delivered: dict[int, set[bytes]] = {}
        for message in consumer.poll(0.2):
            assert message.error() is None
            partition, value = message.partition(), message.value()
            assert partition is not None
            assert value is not None
            delivered.setdefault(partition, set()).add(value)
            consumer.acknowledge(message, AcknowledgeType.REJECT)
        for topic_partition, failure in consumer.commit_sync(TIMEOUT_S).items():
            if failure is None:
                rejected.update(delivered.get(topic_partition.partition, ()))
        return len(rejected) >= count

    wait_until(progress, f"{count} records delivered")


class Letters:
    """The contents of the dead-letter topic."""

    def __init__(self, cluster: ClusterProcesses) -> None:
        self.sources: set[tuple[int, int]] = set()
        self._consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "letters"})
        self._consumer.assign(
            [TopicPartition(DEAD_LETTERS, index, 0) for index in range(PARTITIONS)]
        )

    def wait_for(self, count: int) -> None:
        def progress() -> bool:
            for message in self._consumer.consume(1_000, 0.2):
                if message.error() is None:
                    headers = dict(message.headers() or ())
                    partition = int(headers["__dlq.errors.partition"] or b"")
                    assert partition == message.partition()
                    self.sources.add((partition, int(headers["__dlq.errors.offset"] or b"")))
            return len(self.sources) >= count

        try:
            wait_until(progress, f"{count} dead letters")
        finally:
            print(len(self.sources), "dead letters, by partition and offset:", sorted(self.sources))
        assert len(self.sources) == count

    def close(self) -> None:
        self._consumer.close()


def notes(cluster: ClusterProcesses, group: str) -> list[str]:
    described = json.loads(done(cluster, "groups", "describe", group, "--json"))
    return [row["note"] for row in described["partitions"] if row["note"]]


def lines_about_letters(cluster: ClusterProcesses) -> list[str]:
    return [line for line in cluster.log_text().splitlines() if "dead letter" in line]


def test_letters_go_to_other_leaders_and_wait_for_them(start_cluster: StartCluster) -> None:
    cluster = start_cluster(3, *FEW_COORDINATORS, *PATIENT)
    cluster.wait_for_voters(1, 2, 3)
    create(cluster, "orders", assignment=[[1, 2, 3], [2, 1, 3], [1, 2, 3]])
    create(cluster, DEAD_LETTERS, assignment=[[3]] * PARTITIONS)
    group = configured_group(cluster.bootstrap, "rejecting")
    letters = Letters(cluster)
    with share_consumer(cluster.bootstrap, group, "orders", explicit=True) as consumer:
        produce(cluster, range(FIRST))
        reject(consumer, FIRST)
        produce(cluster, range(FIRST, FIRST + MORE))
        reject(consumer, MORE)
        letters.wait_for(FIRST + MORE)
        wait_until(lambda: notes(cluster, group) == [], "all letters are known to be written")
        assert lines_about_letters(cluster) == []

        cluster.kill(3)
        produce(cluster, range(FIRST + MORE, 2 * FIRST + MORE))
        reject(consumer, FIRST)
        produce(cluster, range(2 * FIRST + MORE, 2 * (FIRST + MORE)))
        reject(consumer, MORE)
        wait_until(lambda: len(notes(cluster, group)) == PARTITIONS, "notes of what waits")
        assert all("has no leader" in note for note in notes(cluster, group))
        assert 1 <= len(lines_about_letters(cluster)) <= 10

        cluster.restart(3)
        letters.wait_for(2 * (FIRST + MORE))
        wait_until(lambda: notes(cluster, group) == [], "all letters are known to be written")
    letters.close()


def test_a_dead_letter_topic_is_made_like_its_source(start_cluster: StartCluster) -> None:
    cluster = start_cluster(3, *FEW_COORDINATORS, *PATIENT)
    cluster.wait_for_voters(1, 2, 3)
    create(cluster, "orders", PARTITIONS, 2)
    group = configured_group(cluster.bootstrap, "rejecting")
    letters = Letters(cluster)
    with share_consumer(cluster.bootstrap, group, "orders", explicit=True) as consumer:
        produce(cluster, range(PARTITIONS))
        reject(consumer, PARTITIONS)
        letters.wait_for(PARTITIONS)
    letters.close()
    assert {len(partition.replicas) for partition in states(cluster, DEAD_LETTERS).values()} == {2}


def test_letters_are_sent_though_no_consumer_returns(start_cluster: StartCluster) -> None:
    """Even after their consumer left and the leaders, which had them in memory, were killed."""
    cluster = start_cluster(3, *FEW_COORDINATORS, *PATIENT)
    cluster.wait_for_voters(1, 2, 3)
    create(cluster, "orders", assignment=[[1, 2, 3], [2, 1, 3], [1, 2, 3]])
    create(cluster, DEAD_LETTERS, assignment=[[3]] * PARTITIONS)
    group = configured_group(cluster.bootstrap, "rejecting")
    with share_consumer(cluster.bootstrap, group, "orders", explicit=True) as consumer:
        produce(cluster, range(FEW))
        reject(consumer, FEW)
        cluster.kill(3)
        produce(cluster, range(FEW, 2 * FEW))
        reject(consumer, FEW)
    cluster.kill(1)
    cluster.restart(1)
    cluster.restart(3)
    letters = Letters(cluster)
    letters.wait_for(2 * FEW)
    letters.close()
