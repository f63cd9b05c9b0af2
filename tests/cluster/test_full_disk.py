"""A node with a full disk leaves its partitions to nodes with room, until it has room again."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.broker_process import BrokerProcess
from tests.cluster.faults.disks import Disk
from tests.cluster.processes import WAIT_S, ClusterProcesses, wait_until
from tests.cluster.topics import (
    PartitionState,
    Traffic,
    consume,
    create,
    is_whole,
    produce,
    states,
)

pytestmark = pytest.mark.process

DISK_BYTES = 64 << 20
# Followers that merely fall behind would stay in sync longer than the test lasts.
SETTINGS = (
    *("--set", "quorum.size=1"),
    *("--set", "replica.lag.time.max.ms=600000"),
    *("--set", "leader.imbalance.check.interval.seconds=1"),
)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with ExitStack() as stack:
        try:
            yield stack.enter_context(Disk(tmp_path / "node-2" / "data", DISK_BYTES))
        except OSError as error:
            pytest.skip(str(error))


@pytest.fixture
def cluster(tmp_path: Path, disk: Disk) -> Iterator[ClusterProcesses]:
    """Node 2 is on a disk of its own; the metadata's only voter is node 1."""
    with ClusterProcesses(tmp_path, 3, *SETTINGS) as cluster:
        yield cluster
    print(cluster.log_text())


def without_2(partition: PartitionState) -> bool:
    return partition.leader != 2 and 2 not in partition.isr


def test_a_full_disk_costs_leadership_and_in_sync_sets_until_there_is_room(
    cluster: ClusterProcesses, disk: Disk
) -> None:
    create(cluster, "shared", assignment=[[2, 1, 3], [1, 2, 3]], min_insync_replicas="2")
    create(cluster, "alone", assignment=[[2]])
    assert produce(cluster, "alone", "before") == [None]
    with Traffic(cluster.bootstrap, "shared") as traffic, disk.full():
        wait_until(lambda: all(map(without_2, states(cluster, "shared").values())), "leaving")
        traffic.wait_for_more(100)
        # Records without another replica can still be read.
        assert consume(cluster.bootstrap, "alone", 1) == ["before"]
        assert states(cluster, "alone")[0].leader == 2
    wait_until(lambda: is_whole(cluster, "shared"), "catching up")
    wait_until(lambda: states(cluster, "shared")[0].leader == 2, "leading again")
    assert produce(cluster, "alone", "after") == [None]
    assert not traffic.errors
    assert "is full" in cluster.node(2).log_text()


def test_a_topic_is_deleted_on_a_full_disk_to_make_room(tmp_path: Path, disk: Disk) -> None:
    with BrokerProcess(tmp_path / "node-2", "--set", "log.segment.delete.delay.ms=0") as broker:
        client = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        client.create_topics([NewTopic("large", 1)])["large"].result()
        fill(broker.bootstrap, "large")
        client.create_topics([NewTopic("small", 1)])["small"].result()
        client.delete_topics(["large"])["large"].result()
        # It is retried until there is room.
        producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        errors: list[object] = []
        producer.produce("small", b"record", on_delivery=lambda error, _: errors.append(error))
        producer.flush(WAIT_S)
        assert errors == [None]


def fill(bootstrap: str, topic: str) -> None:
    """Writes until the disk is full, which is when a record is refused."""
    errors: list[object] = []
    settings = {"bootstrap.servers": bootstrap, "retries": 0, "log_level": 0}
    producer = Producer(settings | {"linger.ms": 0, "message.max.bytes": 2 << 20})
    for _ in range(2 * DISK_BYTES >> 20):
        producer.produce(
            topic, os.urandom(1_000_000), on_delivery=lambda error, _: errors.append(error)
        )
        producer.flush(WAIT_S)
        if errors[-1] is not None:
            return
    raise AssertionError("the disk is not full")
