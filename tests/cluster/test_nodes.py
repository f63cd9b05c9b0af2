"""Nodes of a real cluster fail, return, are drained, removed and added; records stay."""

import json
from collections import Counter
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.cluster.clients import TIMEOUT_S
from tests.cluster.commands import done, nodes, ottla
from tests.cluster.conftest import StartCluster
from tests.cluster.processes import PATIENT, ClusterProcesses, wait_until
from tests.cluster.topics import create, states

pytestmark = pytest.mark.process

SOON = ("--set", "leader.imbalance.check.interval.seconds=1")
RECORDS = 60
PARTITIONS = 6


def partitions(cluster: ClusterProcesses) -> list[dict[str, Any]]:
    """The topic's partitions; retried while a leader moves, because then offsets are missing."""
    described: list[Any] = []

    def describe() -> bool:
        finished = ottla(cluster, "topics", "describe", "orders", "--json")
        if finished.returncode == 0:
            described.extend(json.loads(finished.stdout)[0]["partitions"])
        return bool(described)

    wait_until(describe, "a description of the topic")
    return described


def leaders(cluster: ClusterProcesses) -> Counter[int]:
    return Counter(partition["leader"] for partition in partitions(cluster))


def is_in_sync(cluster: ClusterProcesses) -> bool:
    return all(
        sorted(partition["isr"]) == sorted(partition["replicas"])
        for partition in partitions(cluster)
    )


def create_and_fill(cluster: ClusterProcesses, replication_factor: int) -> None:
    done(
        cluster,
        *("topics", "create", "orders", "--partitions", str(PARTITIONS)),
        *("--replication-factor", str(replication_factor)),
    )
    produce(cluster)


def produce(cluster: ClusterProcesses) -> None:
    failures: list[object] = []
    settings = {"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "log_level": 0}
    producer = Producer(settings)
    for number in range(RECORDS):
        producer.produce(
            "orders",
            str(number).encode(),
            partition=number % PARTITIONS,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    assert producer.flush(TIMEOUT_S) == 0
    assert failures == []


def has_records(cluster: ClusterProcesses, count: int) -> bool:
    """Whether consumers can read that many; false while a partition has no leader."""
    found = partitions(cluster)
    return all(partition["end_offset"] is not None for partition in found) and count == sum(
        partition["end_offset"] - partition["start_offset"] for partition in found
    )


def is_logged(cluster: ClusterProcesses, text: str) -> bool:
    """In the log of a node."""
    return text in cluster.log_text()


def test_a_node_that_dies_is_replaced_and_leads_again_when_it_is_back(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster(3, *SOON)
    cluster.wait_for_voters(1, 2, 3)
    create_and_fill(cluster, 3)
    wait_until(lambda: leaders(cluster) == {1: 2, 2: 2, 3: 2}, "leaders on all nodes")
    cluster.kill(3)
    wait_until(lambda: nodes(cluster)[3]["state"] == "fenced", "fencing")
    wait_until(lambda: set(leaders(cluster)) == {1, 2}, "leaders on the others")
    wait_until(lambda: is_logged(cluster, "node 3 is fenced: its process has ended; new leader of"))
    wait_until(lambda: is_logged(cluster, "the controller has named leaders; leader of"))
    produce(cluster)
    create(cluster, "uneven", assignment=[[1]] * 4)
    rebalanced = ottla(cluster, "rebalance")
    assert rebalanced.returncode == 0, rebalanced.stderr
    assert "they have replicas on node 3, which is down; start it" in rebalanced.stderr
    assert {partition.replicas for partition in states(cluster, "uneven").values()} == {(1,), (2,)}
    cluster.restart(3)
    wait_until(lambda: is_in_sync(cluster), "catching up")
    wait_until(lambda: leaders(cluster) == {1: 2, 2: 2, 3: 2}, "the return of leaders")
    wait_until(lambda: has_records(cluster, 2 * RECORDS), "all records")


def test_a_node_that_stops_in_order_hands_its_partitions_over(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster(3)
    cluster.wait_for_voters(1, 2, 3)
    create_and_fill(cluster, 2)
    for node_id in (1, 2):  # The first one is also the controller.
        assert cluster.terminate(node_id) == 0
        assert nodes(cluster)[node_id]["state"] == "fenced"
        wait_until(lambda node_id=node_id: node_id not in leaders(cluster), "other leaders")
        produce(cluster)
        cluster.restart(node_id)
        wait_until(lambda: is_in_sync(cluster), "catching up")
    wait_until(lambda: has_records(cluster, 3 * RECORDS), "all records")


def test_a_node_is_drained_and_removed_and_another_gets_its_share(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster(4, *PATIENT)
    wait_until(lambda: len(cluster.voters()) == 3, "three voters")
    create_and_fill(cluster, 2)
    leaving = next(node for node in cluster.voters() if node != cluster.leader())
    refused = ottla(cluster, "node", "remove", str(leaving))
    assert "is running; stop it first" in refused.stderr
    planned = json.loads(done(cluster, "node", "drain", str(leaving), "--dry-run", "--json"))
    assert nodes(cluster)[leaving]["replicas"] == len(planned) > 0
    done(cluster, "node", "drain", str(leaving), "--step", "2")
    wait_until(lambda: len(cluster.voters()) == 3, "another voter in its place")
    assert leaving not in cluster.voters()
    done(cluster, "topics", "create", "late", "--partitions", "6", "--replication-factor", "3")
    assert nodes(cluster)[leaving]["replicas"] == 0
    assert nodes(cluster)[leaving]["state"] == "drained"
    done(cluster, "topics", "delete", "late")
    assert is_in_sync(cluster)
    assert cluster.terminate(leaving) == 0
    done(cluster, "node", "remove", str(leaving))
    assert leaving not in nodes(cluster)
    assert leaving not in cluster.voters()
    produce(cluster)

    cluster.add(5)
    done(cluster, "rebalance")
    rows = nodes(cluster).values()
    assert sorted(row["replicas"] for row in rows) == [3, 3, 3, 3]
    assert max(row["leaders"] for row in rows) == 2
    wait_until(lambda: has_records(cluster, 2 * RECORDS), "all records")


def test_a_topic_gets_more_replicas_and_fewer_again(start_cluster: StartCluster) -> None:
    cluster = start_cluster(3, *PATIENT)
    create_and_fill(cluster, 1)
    done(cluster, "topics", "reassign", "orders", "--replication-factor", "3")
    assert all(len(partition["replicas"]) == 3 for partition in partitions(cluster))
    assert is_in_sync(cluster)
    done(cluster, "topics", "reassign", "orders", "--partition", "0", "--replicas", "2,3")
    assert partitions(cluster)[0]["replicas"] == [2, 3]
    assert partitions(cluster)[0]["leader"] == 2
    done(cluster, "topics", "reassign", "orders", "--replication-factor", "1")
    assert all(len(partition["replicas"]) == 1 for partition in partitions(cluster))
    wait_until(lambda: has_records(cluster, RECORDS), "all records")
