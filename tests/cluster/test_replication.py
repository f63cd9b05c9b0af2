"""Replicated topics on real processes, as clients and operators see them.

All tests share one cluster. Only node 1 votes, so that any of the others can be killed; each test
has topics of its own, and the nodes that it stops are started again after it.
"""

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import NewPartitions
from tests.cli.command import start_ottla
from tests.cluster.clients import TIMEOUT_S, admin, awake
from tests.cluster.commands import done, nodes, ottla
from tests.cluster.processes import ClusterProcesses, wait_until
from tests.cluster.topics import (
    Traffic,
    consume,
    create,
    is_whole,
    produce,
    state,
    states,
)

from ottla.records.batch import iterate_headers

# One worker: the module's cluster takes seconds to start.
pytestmark = [pytest.mark.process, pytest.mark.xdist_group("replication")]

RACKS = {1: "a", 2: "b", 3: "c"}
SETTINGS = (
    *("--set", "quorum.size=1"),
    *("--set", "leader.imbalance.check.interval.seconds=1"),
    *("--set", "replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector"),
    *("--set", "log.segment.delete.delay.ms=0"),
)
CHUNK = "x" * 100_000


@pytest.fixture(scope="module")
def all_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcesses]:
    cluster = ClusterProcesses(tmp_path_factory.mktemp("replication"), 1, *SETTINGS, *rack(1))
    with cluster:
        for node_id in (2, 3):
            cluster.add(node_id, *rack(node_id))
        yield cluster
        for node_id in reversed(cluster.running):
            cluster.terminate(node_id)  # While there is still a controller for a clean stop.
    print(cluster.log_text())


@pytest.fixture
def cluster(all_nodes: ClusterProcesses) -> Iterator[ClusterProcesses]:
    yield all_nodes
    stopped = set(all_nodes.ids) - set(all_nodes.running)
    for node_id in stopped:
        all_nodes.restart(node_id)


def rack(node_id: int) -> tuple[str, str]:
    return "--set", f"broker.rack={RACKS.get(node_id, 'd')}"


def test_records_are_written_and_read_through_any_node(cluster: ClusterProcesses) -> None:
    create(cluster, "anywhere", assignment=[[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    for partition in range(3):
        assert produce(cluster, "anywhere", "a", "b", partition=partition) == [None, None]
    for node_id in cluster.ids:
        for partition in range(3):
            read = consume(cluster.bootstrap_of(node_id), "anywhere", 2, partition)
            assert read == ["a", "b"]


def test_a_consumer_reads_from_the_replica_in_its_rack(cluster: ClusterProcesses) -> None:
    create(cluster, "near", assignment=[[1, 2, 3]])
    produce(cluster, "near", "first")
    read_from: list[int] = []

    def on_statistics(text: str) -> None:
        partitions = json.loads(text)["topics"].get("near", {}).get("partitions", {})
        read_from.append(partitions.get("0", {}).get("broker", -1))

    consumer = Consumer(
        {
            "bootstrap.servers": awake(cluster),
            "group.id": "near",
            "client.rack": "c",
            "statistics.interval.ms": 50,
            "stats_cb": on_statistics,
        }
    )
    consumer.assign([TopicPartition("near", 0, 0)])
    values: list[bytes | None] = []

    def has_moved() -> bool:
        values.extend(message.value() for message in consumer.consume(10, 0.1))
        return bool(read_from) and read_from[-1] == 3

    wait_until(has_moved, "fetches from node 3")
    produce(cluster, "near", "second")
    wait_until(lambda: has_moved() and len(values) == 2, "both records")
    consumer.close()
    assert values == [b"first", b"second"]


def test_too_few_in_sync_replicas_are_refused_and_said_so(cluster: ClusterProcesses) -> None:
    create(cluster, "careful", assignment=[[1, 2, 3]], min_insync_replicas="3")
    assert produce(cluster, "careful", "kept") == [None]
    cluster.kill(3)
    wait_until(lambda: is_refused(cluster, "careful"), "a refusal")
    cluster.restart(3)
    wait_until(lambda: is_whole(cluster, "careful"), "catching up")
    assert produce(cluster, "careful", "taken") == [None]
    assert consume(awake(cluster), "careful", 2) == ["kept", "taken"]


def is_refused(cluster: ClusterProcesses, name: str) -> bool:
    """Whether the leader refuses; called once it knows that there are too few."""
    leader = state(cluster, name).leader
    if leader not in cluster.awake or 3 in state(cluster, name, leader).isr:
        return False
    (error,) = produce(cluster, name, "refused", enable_idempotence=False, retries=0)
    assert error is not None
    return error.code() == KafkaError.NOT_ENOUGH_REPLICAS


def test_leaders_move_when_a_node_stops_and_return_and_no_produce_fails(
    cluster: ClusterProcesses,
) -> None:
    create(cluster, "moved", assignment=[[2, 3, 1], [3, 1, 2], [2, 1, 3]])
    with Traffic(awake(cluster), "moved") as traffic:
        for node_id in (2, 3):
            assert cluster.terminate(node_id) == 0
            wait_until(lambda node_id=node_id: not leads(cluster, "moved", node_id), "others")
            traffic.wait_for_more()
            cluster.restart(node_id)
            wait_until(lambda: is_whole(cluster, "moved"), "catching up")
        wait_until(
            lambda: all(
                partition.leader == partition.replicas[0]
                for partition in states(cluster, "moved").values()
            ),
            "the return of leaders",
        )
        traffic.wait_for_more()
    assert traffic.errors == []


def leads(cluster: ClusterProcesses, name: str, node_id: int) -> bool:
    return any(partition.leader == node_id for partition in states(cluster, name).values())


def test_only_an_unclean_election_makes_a_leader_of_who_lacks_records(
    cluster: ClusterProcesses,
) -> None:
    """It loses acknowledged records, so it must be requested explicitly."""
    create(cluster, "unclean", assignment=[[2, 3]])
    assert produce(cluster, "unclean", "both have it") == [None]
    cluster.kill(3)
    wait_until(lambda: state(cluster, "unclean", 2).isr == (2,), "a smaller in-sync set")
    assert produce(cluster, "unclean", "only 2 has it") == [None]
    cluster.kill(2)
    cluster.restart(3)
    wait_until(lambda: nodes(cluster)[3]["state"] == "active", "node 3")
    wait_until(lambda: not leads(cluster, "unclean", 2), "the end of node 2")
    assert state(cluster, "unclean").leader == -1
    done(
        cluster,
        *("configs", "alter", "--topic", "unclean"),
        *("--set", "unclean.leader.election.enable=true"),
    )
    wait_until(lambda: state(cluster, "unclean").leader == 3, "an unclean election")
    assert produce(cluster, "unclean", "after") == [None]
    cluster.restart(2)
    wait_until(lambda: is_whole(cluster, "unclean"), "catching up")
    assert consume(awake(cluster), "unclean", 2) == ["both have it", "after"]


def test_partitions_and_nodes_are_added_while_records_are_written(
    cluster: ClusterProcesses,
) -> None:
    create(cluster, "grown", assignment=[[1, 2, 3], [2, 3, 1]])
    fast = {"topic_metadata_refresh_interval_ms": 100}
    with Traffic(awake(cluster), "grown", **fast) as traffic:
        client = admin(cluster)
        client.create_partitions([NewPartitions("grown", 6)])["grown"].result(TIMEOUT_S)
        cluster.add(4, *rack(4))
        planned = json.loads(done(cluster, "rebalance", "--dry-run", "--json"))
        moved = {plan["topic"] for plan in planned}
        assert "grown" in moved
        assert nodes(cluster)[4]["replicas"] == 0
        done(cluster, "rebalance", "--throttle", "200MB")
        traffic.wait_for_more()
    assert traffic.errors == []
    wait_until(lambda: is_whole(cluster, "grown"), "all in sync")
    wait_until(lambda: is_balanced(cluster), "as much on each node")
    assert json.loads(done(cluster, "rebalance", "--dry-run", "--json")) == []
    assert 4 in {
        node for partition in states(cluster, "grown").values() for node in partition.replicas
    }


def is_balanced(cluster: ClusterProcesses) -> bool:
    rows = nodes(cluster).values()
    replicas = [int(row["replicas"]) for row in rows]
    leaders = [int(row["leaders"]) for row in rows]
    return max(replicas) - min(replicas) <= 1 and max(leaders) - min(leaders) <= 1


def test_a_replica_that_was_damaged_is_copied_anew(cluster: ClusterProcesses) -> None:
    values = [f"{number:0100}" for number in range(90)]
    create(cluster, "damaged", assignment=[[1, 2, 3]], internal_segment_bytes="1300")
    for first in range(0, len(values), 10):
        produce(cluster, "damaged", *values[first : first + 10])
    cluster.terminate(3)
    flip_a_record(cluster.node(3).data / "damaged-0")
    cluster.restart(3)
    repaired = "the log of damaged-0 is repaired"
    wait_until(lambda: repaired in cluster.node(3).log_text(), "the repair")
    wait_until(lambda: is_whole(cluster, "damaged"), "a new copy")
    done(cluster, "topics", "reassign", "damaged", "--replicas", "3")
    assert consume(awake(cluster), "damaged", len(values)) == values


def flip_a_record(directory: Path) -> None:
    """In a closed segment; its indexes are removed too, so that it is read at startup."""
    segment = sorted(directory.glob("*.log"))[2]
    content = bytearray(segment.read_bytes())
    positions = [position for position, _ in iterate_headers(content)]
    content[positions[len(positions) // 2] - 1] ^= 1
    segment.write_bytes(content)
    for index in directory.glob("*.*index"):
        index.unlink()


def test_a_node_that_lost_its_disk_copies_everything(cluster: ClusterProcesses) -> None:
    values = [str(number) for number in range(50)]
    create(cluster, "lost", assignment=[[3, 1, 2]])
    produce(cluster, "lost", *values)
    cluster.kill(3)
    shutil.rmtree(cluster.node(3).data)
    cluster.restart(3)
    wait_until(lambda: is_whole(cluster, "lost"), "a new copy")
    done(cluster, "topics", "reassign", "lost", "--replicas", "3")
    wait_until(lambda: state(cluster, "lost").replicas == (3,), "one replica")
    assert consume(awake(cluster), "lost", len(values)) == values


def test_a_reassignment_is_throttled_watched_and_done(cluster: ClusterProcesses) -> None:
    create(cluster, "throttled", assignment=[[1]])
    produce(cluster, "throttled", *[CHUNK] * 30)
    command = start_ottla(
        *("topics", "reassign", "throttled", "--replicas", "2,3", "--throttle", "10KB"),
        bootstrap=awake(cluster),
    )
    wait_until(lambda: ongoing(cluster), "a reassignment")
    (move,) = ongoing(cluster)
    assert (move["replicas"], move["new_replicas"]) == ([1], [2, 3])
    assert 0 < move["bytes_left"] <= 2 * 31 * len(CHUNK)
    assert throttles(cluster) == {
        "leader.replication.throttled.replicas": "0:1",
        "follower.replication.throttled.replicas": "0:2,0:3",
    }
    # In-sync replicas are not throttled.
    assert produce(cluster, "throttled", "meanwhile") == [None]
    command.send_signal(signal.SIGINT)
    _, errors = command.communicate(timeout=TIMEOUT_S)
    assert command.returncode == 130
    assert b"copying continues: `ottla reassignments watch`" in errors
    assert state(cluster, "throttled").leader == 1
    finished = ottla(cluster, "reassignments", "watch", "--throttle", "100MB")
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == "1 of 1 partitions done\n"
    wait_until(lambda: state(cluster, "throttled").replicas == (2, 3), "other replicas")
    assert throttles(cluster) == {}
    assert consume(awake(cluster), "throttled", 31)[-1] == "meanwhile"


@pytest.mark.parametrize(
    "words", [("topics", "reassign", "TOPIC", "--cancel"), ("reassignments", "cancel")]
)
def test_a_reassignment_is_cancelled_with_its_throttle(
    cluster: ClusterProcesses, words: tuple[str, ...]
) -> None:
    """The replicas are the previous ones, in order: the first should lead."""
    topic = f"cancelled-by-{words[0]}"
    create(cluster, topic, assignment=[[2, 1]])
    produce(cluster, topic, *[CHUNK] * 30)
    command = start_ottla(
        *("topics", "reassign", topic, "--replicas", "3,1", "--throttle", "10KB"),
        bootstrap=awake(cluster),
    )
    wait_until(lambda: ongoing(cluster), "a reassignment")
    done(cluster, *(topic if word == "TOPIC" else word for word in words))
    command.communicate(timeout=TIMEOUT_S)
    assert ongoing(cluster) == []
    wait_until(lambda: state(cluster, topic).replicas == (2, 1), "the replicas of before")
    assert throttles(cluster, topic) == {}


def ongoing(cluster: ClusterProcesses) -> list[dict[str, Any]]:
    moves: list[dict[str, Any]] = json.loads(done(cluster, "reassignments", "list", "--json"))
    return moves


def throttles(cluster: ClusterProcesses, topic: str = "throttled") -> dict[str, str]:
    rows = json.loads(done(cluster, "configs", "describe", "--topic", topic, "--json"))
    return {row["key"]: row["value"] for row in rows if "throttled" in row["key"]}
