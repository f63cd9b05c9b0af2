"""Groups continue when their coordinator dies, and keep committed offsets."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, ShareConsumer, TopicPartition
from tests.clients.test_share_groups import configured_group
from tests.cluster.clients import (
    TIMEOUT_S,
    awake,
    coordinator,
    create_topic,
    leaders,
    replicas,
)
from tests.cluster.conftest import StartCluster
from tests.cluster.processes import ClusterProcesses, wait_until

pytestmark = pytest.mark.process

FEW_COORDINATORS = (
    *("--set", "offsets.topic.num.partitions=3"),
    *("--set", "share.coordinator.state.topic.num.partitions=3"),
    *("--set", "transaction.state.log.num.partitions=3"),
)
PARTITIONS = 4
RECORDS = 40


@pytest.fixture
def cluster(start_cluster: StartCluster) -> ClusterProcesses:
    cluster = start_cluster(3, *FEW_COORDINATORS)
    cluster.wait_for_voters(1, 2, 3)
    create_topic(cluster, "orders", PARTITIONS)
    return cluster


def produce(cluster: ClusterProcesses, *numbers: int) -> None:
    settings = {"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "log_level": 0}
    producer = Producer(settings)
    failures: list[object] = []
    for number in numbers:
        producer.produce(
            "orders",
            str(number),
            partition=number % PARTITIONS,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    assert producer.flush(TIMEOUT_S) == 0
    assert failures == []


@contextmanager
def consumers(cluster: ClusterProcesses, protocol: str, count: int) -> Iterator[list[Consumer]]:
    config = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": "readers",
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "log_level": 0,
    }
    members = [Consumer(config) for _ in range(count)]
    for member in members:
        member.subscribe(["orders"])
    try:
        yield members
    finally:
        for member in members:
            member.close()


def read(members: list[Consumer], found: Counter[int], count: int) -> None:
    """Polls until that many different records were read."""

    def is_read() -> bool:
        for member in members:
            message = member.poll(0.05)
            if message is not None and message.error() is None:
                found[int(message.value() or b"")] += 1
        return len(found) >= count

    wait_until(is_read, f"{count} records")


def commit(cluster: ClusterProcesses, members: list[Consumer], count: int) -> None:
    """Retries like an application, until all of these records are committed.

    A partition that changes hands in between is read again by its next owner.
    """

    def is_committed() -> bool:
        for member in members:
            try:
                member.poll(0.05)
                positions = [
                    position
                    for position in member.position(member.assignment())
                    if position.offset >= 0
                ]
                if positions:
                    member.commit(offsets=positions, asynchronous=False)
            except KafkaException:
                continue
        return committed(cluster) == [count // PARTITIONS] * PARTITIONS

    wait_until(is_committed, f"commits of {count} records")


def committed(cluster: ClusterProcesses) -> list[int] | None:
    """Committed offsets by partition; None while there is no coordinator."""
    consumer = Consumer(
        {"bootstrap.servers": awake(cluster), "group.id": "readers", "log_level": 0}
    )
    topic_partitions = [TopicPartition("orders", index) for index in range(PARTITIONS)]
    try:
        return [
            topic_partition.offset
            for topic_partition in consumer.committed(topic_partitions, timeout=TIMEOUT_S)
        ]
    except KafkaException:
        return None
    finally:
        consumer.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_outlives_its_coordinators(cluster: ClusterProcesses, protocol: str) -> None:
    found: Counter[int] = Counter()
    produce(cluster, *range(RECORDS))
    with consumers(cluster, protocol, 2) as members:
        read(members, found, RECORDS)
        commit(cluster, members, RECORDS)
        for round_number in (1, 2):
            killed = coordinator(cluster, "readers")
            cluster.kill(killed)
            produce(cluster, *range(round_number * RECORDS, (round_number + 1) * RECORDS))
            read(members, found, (round_number + 1) * RECORDS)
            assert coordinator(cluster, "readers") != killed
            commit(cluster, members, (round_number + 1) * RECORDS)
            cluster.restart(killed)
    wanted = [3 * RECORDS // PARTITIONS] * PARTITIONS
    wait_until(lambda: committed(cluster) == wanted, "what was committed")
    assert set(found) == set(range(3 * RECORDS))


def test_a_share_group_outlives_its_coordinators(cluster: ClusterProcesses) -> None:
    configured_group(cluster.bootstrap, "workers")
    config = {"bootstrap.servers": cluster.bootstrap, "group.id": "workers", "log_level": 0}
    found: Counter[int] = Counter()

    def work(consumer: ShareConsumer, count: int) -> None:
        def is_done() -> bool:
            for message in consumer.poll(0.2):
                if message.error() is None:
                    found[int(message.value() or b"")] += 1
            return len(found) >= count

        wait_until(is_done, f"{count} records")

    produce(cluster, *range(RECORDS))
    consumer = ShareConsumer(config)
    consumer.subscribe(["orders"])
    try:
        work(consumer, RECORDS)
        for round_number in (1, 2):
            killed = coordinator(cluster, "workers")
            cluster.kill(killed)
            produce(cluster, *range(round_number * RECORDS, (round_number + 1) * RECORDS))
            work(consumer, (round_number + 1) * RECORDS)
            cluster.restart(killed)
    finally:
        consumer.close()
    assert set(found) == set(range(3 * RECORDS))


def test_a_cluster_that_grows_keeps_its_coordinators_on_several_nodes(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster(
        1, *FEW_COORDINATORS, "--set", "leader.imbalance.check.interval.seconds=1"
    )
    create_topic(cluster, "orders", PARTITIONS, replication_factor=1)
    produce(cluster, *range(RECORDS))
    with consumers(cluster, "classic", 1) as members:
        found: Counter[int] = Counter()
        read(members, found, RECORDS)
        assert replicas(cluster, "__consumer_offsets") == [([1], [1])] * 3
        for node_id in (2, 3):
            cluster.add(node_id)
        cluster.wait_for_voters(1, 2, 3)
        wanted = [([1, 2, 3], [1, 2, 3])] * 3
        wait_until(lambda: replicas(cluster, "__consumer_offsets") == wanted, "more replicas")
        wait_until(lambda: sorted(leaders(cluster, "__consumer_offsets")) == [1, 2, 3], "leaders")
        produce(cluster, *range(RECORDS, 2 * RECORDS))
        read(members, found, 2 * RECORDS)
        commit(cluster, members, 2 * RECORDS)
    assert replicas(cluster, "orders") == [([1], [1])] * PARTITIONS
    cluster.kill(1)
    kept = [2 * RECORDS // PARTITIONS] * PARTITIONS
    wait_until(lambda: committed(cluster) == kept, "what was committed")
