"""A replica that lacks a batch is found, in its files and over the wire, and copied again."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.commands import done, ottla
from tests.cluster.faults.replicas import different_replicas
from tests.cluster.processes import ClusterProcesses, wait_until
from tests.cluster.topics import create, is_whole, produce, state

from ottla.records.batch import iterate_headers

pytestmark = pytest.mark.process

VICTIM = 3
GAP = 2  # The offset that it loses.


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ClusterProcesses]:
    with ClusterProcesses(tmp_path) as cluster:
        cluster.wait_for_voters(1, 2, 3)
        yield cluster


def cut_out_batch(log: Path, offset: int) -> None:
    """Like an old bug that no checksum reveals; indexes are rebuilt."""
    content = log.read_bytes()
    (removed,) = [
        (position, header.size)
        for position, header in iterate_headers(content)
        if header.base_offset == offset
    ]
    log.write_bytes(content[: removed[0]] + content[sum(removed) :])
    for index in log.parent.glob("*index"):
        index.unlink()


@pytest.mark.parametrize("leader", [1, VICTIM])
def test_a_gap_in_one_replica_is_found_and_repaired(cluster: ClusterProcesses, leader: int) -> None:
    others = [node_id for node_id in (1, 2, 3) if node_id != leader]
    create(cluster, "orders", assignment=[[leader, *others]])
    create(cluster, "latest", assignment=[[1, 2, 3]], cleanup_policy="compact")
    for number in range(5):
        assert produce(cluster, "orders", f"order {number}") == [None]
    done(cluster, "produce", "latest", "lamp", "--key", "anna")
    same = ottla(cluster, "topics", "verify")
    assert same.returncode == 0, same.stderr
    assert "have the same records" in same.stdout
    assert different_replicas(cluster.data) == []

    cluster.terminate(VICTIM)
    (log,) = (cluster.data[VICTIM] / "orders-0").glob("*.log")
    cut_out_batch(log, GAP)
    cluster.restart(VICTIM)
    wait_until(lambda: is_whole(cluster, "orders"), "in sync")
    done(cluster, "topics", "elect-leaders")
    wait_until(lambda: state(cluster, "orders").leader == leader, "its leader")
    (found,) = different_replicas(cluster.data, settle_s=0)
    assert f"orders-0 on node {VICTIM} lacks offsets {GAP} to {GAP}" in found

    verified = ottla(cluster, "topics", "verify", "orders", "--json")
    assert verified.returncode == 1, verified.stderr
    (different,) = json.loads(verified.stdout)
    assert (different["node"], different["offset"]) == (VICTIM, GAP)
    assert different["problem"] == f"lacks offsets {GAP} to {GAP}"
    for command in different["repair"]:
        repaired = ottla(cluster, *command.split()[1:])
        assert repaired.returncode == 0, repaired.stderr
    wait_until(lambda: ottla(cluster, "topics", "verify").returncode == 0, "it is copied")
    assert different_replicas(cluster.data) == []
