"""Nodes with several log directories lose one of them; the others go on, and a new one is filled.

The directory of a failing disk is removed under the running process: open files can still be
written, but creating a file there fails.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.clients import awake
from tests.cluster.processes import ClusterProcesses, wait_until
from tests.cluster.topics import (
    PartitionState,
    consume,
    create,
    is_whole,
    produce,
    states,
)

pytestmark = pytest.mark.process

PARTITIONS = 6
SETTINGS = (
    *("--set", "quorum.size=1"),
    *("--set", "log.flush.offset.checkpoint.interval.ms=200"),
    *("--set", "leader.imbalance.check.interval.seconds=1"),
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcesses]:
    """Node 2 has two log directories. The topic has two replicas, and node 2 leads half of it."""
    directory = tmp_path_factory.mktemp("disks")
    with ClusterProcesses(directory, 1, *SETTINGS) as cluster:
        cluster.add(2, "--data", str(second_disk(directory)))
        cluster.add(3)
        assignment = [[2, 3], [3, 2]] * (PARTITIONS // 2)
        create(cluster, "orders", assignment=assignment)
        for partition in range(PARTITIONS):
            assert produce(cluster, "orders", f"first {partition}", partition=partition) == [None]
        yield cluster
        for node_id in reversed(cluster.running):
            cluster.terminate(node_id)
    print(cluster.log_text())


def second_disk(directory: Path) -> Path:
    return directory / "node-2" / "second"


def partitions_in(disk: Path) -> set[int]:
    return {int(path.name.rpartition("-")[2]) for path in disk.glob("orders-*")}


def in_sync_on(cluster: ClusterProcesses, node_id: int) -> set[int]:
    found = states(cluster, "orders").items()
    return {index for index, partition in found if node_id in partition.isr}


def led(indexed: tuple[int, PartitionState], on_disk: set[int]) -> bool:
    """Led by the other node if it was on the disk, else as before."""
    index, partition = indexed
    return partition.leader == (3 if index in on_disk else partition.replicas[0])


def test_a_disk_fails_and_comes_back_and_another_is_replaced(
    cluster: ClusterProcesses,
) -> None:
    disk = cluster.node(2).data.parent / "second"
    everything = set(range(PARTITIONS))
    on_disk = partitions_in(disk)
    assert on_disk
    assert partitions_in(cluster.node(2).data) == everything - on_disk

    disk.rename(disk.with_name("taken away"))
    wait_until(lambda: in_sync_on(cluster, 2) == everything - on_disk, "leaving the disk")
    assert "goes offline" in cluster.node(2).log_text()
    wait_until(
        lambda: all(led(indexed, on_disk) for indexed in states(cluster, "orders").items()),
        "leaders",
    )
    for index in everything:
        assert produce(cluster, "orders", f"second {index}", partition=index) == [None]

    cluster.terminate(2)
    disk.with_name("taken away").rename(disk)
    cluster.restart(2)
    wait_until(lambda: is_whole(cluster, "orders"), "catching up")
    assert partitions_in(disk) == on_disk

    cluster.terminate(2)
    shutil.rmtree(disk)
    cluster.restart(2)
    wait_until(lambda: is_whole(cluster, "orders"), "new copies")
    cluster.kill(3)
    wait_until(
        lambda: all(partition.leader == 2 for partition in states(cluster, "orders").values()),
        "node 2",
    )
    for index in range(PARTITIONS):
        read = consume(awake(cluster), "orders", 2, index)
        assert read == [f"first {index}", f"second {index}"]
