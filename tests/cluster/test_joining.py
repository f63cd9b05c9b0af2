"""Joining a cluster: what an operator sees if it works and if it does not."""

import shutil
from pathlib import Path

import pytest
from kio.schema.describe_quorum.v2.response import ReplicaState
from tests.broker_process import BrokerProcess
from tests.cluster.conftest import StartCluster
from tests.cluster.processes import ClusterProcesses, wait_until

pytestmark = pytest.mark.process


def process(directory: Path, *arguments: str) -> BrokerProcess:
    directory.mkdir(exist_ok=True)
    return BrokerProcess(directory, *arguments)


def exit_of(node: BrokerProcess) -> int:
    """The exit code of a process that ends by itself."""
    node.launch()
    wait_until(lambda: not node.is_running, "the end of the process")
    return node.stop()


def test_a_node_that_has_joined_finds_the_cluster_without_being_told(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    cluster = start_cluster(2)
    cluster.wait_for_voters(1, 2)
    second = cluster.node(2)
    cluster.terminate(2)
    with BrokerProcess(second.data.parent, "--id", "2", port=second.reserved):
        assert cluster.voters() == [1, 2]


def test_a_voter_that_comes_back_on_another_port_is_found(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster(3)
    cluster.wait_for_voters(1, 2, 3)
    leader = cluster.leader()
    moved, other = (node_id for node_id in cluster.ids if node_id != leader)
    cluster.terminate(moved)
    directory = cluster.node(moved).data.parent
    with BrokerProcess(directory, "--id", str(moved)) as node:
        wait_until(lambda: node.port in ports_of_voters(cluster))
        cluster.kill(other)  # A majority needs the one that moved.
        assert cluster.quorum(leader).high_watermark > 0
        wait_until(lambda: cluster.voters() == [1, 2, 3])


def ports_of_voters(cluster: ClusterProcesses) -> set[int]:
    return {listener.port for node in cluster.describe().nodes for listener in node.listeners}


def test_nobody_to_join_is_said_at_once_and_the_node_can_be_stopped(tmp_path: Path) -> None:
    node = process(tmp_path / "a", "--id", "2", "--join", "127.0.0.1:1")
    node.launch()
    wait_until(lambda: "no node to join answers yet: 127.0.0.1:1" in node.log_text())
    assert node.stop() == 0
    assert not (node.data / "meta.properties").exists()


def test_a_directory_of_another_cluster_is_refused(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    with process(tmp_path / "other", "--id", "2") as other:
        pass
    cluster = start_cluster(1)
    node = BrokerProcess(other.data.parent, "--id", "2", "--join", cluster.bootstrap)
    assert exit_of(node) == 1
    assert "nodes to join are of cluster" in node.log_text()


def test_an_id_that_is_taken_is_refused(start_cluster: StartCluster, tmp_path: Path) -> None:
    cluster = start_cluster(1)
    forever = ("--set", "broker.session.timeout.ms=3600000")  # No session expires.
    node = process(tmp_path / "a", "--id", "1", "--join", cluster.bootstrap, *forever)
    assert exit_of(node) == 1
    port = cluster.node(1).port
    assert f"node id 1 is taken by the node at localhost:{port}" in node.log_text()


def test_a_join_that_was_cut_short_does_not_begin_a_cluster(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    """It had only marked its directory."""
    cluster = start_cluster(2)
    cluster.wait_for_voters(1, 2)
    node = process(tmp_path / "a", "--id", "3")
    metadata = "__cluster_metadata-0"
    (node.data / metadata).mkdir(parents=True)
    quorum_state = '{"leaderId":-1,"leaderEpoch":0,"votedId":-1,"data_version":1}'
    (node.data / metadata / "quorum-state").write_text(quorum_state)
    assert exit_of(node) == 1
    assert "is to join a cluster; say which with --join" in node.log_text()
    with BrokerProcess(node.data.parent, "--id", "3", "--join", cluster.bootstrap):
        cluster.wait_for_voters(1, 2, 3)


def test_a_voter_whose_disk_was_replaced_votes_again(start_cluster: StartCluster) -> None:
    cluster = start_cluster(3)
    cluster.wait_for_voters(1, 2, 3)
    lost = next(node_id for node_id in cluster.ids if node_id not in (1, cluster.leader()))
    before = {int(voter.replica_id): voter.replica_directory_id for voter in voters(cluster)}
    cluster.kill(lost)
    shutil.rmtree(cluster.node(lost).data)
    cluster.restart(lost)

    def is_replaced() -> bool:
        after = {int(voter.replica_id): voter.replica_directory_id for voter in voters(cluster)}
        return after.keys() == before.keys() and after[lost] != before[lost]

    wait_until(is_replaced)


def voters(cluster: ClusterProcesses) -> tuple[ReplicaState, ...]:
    found: tuple[ReplicaState, ...] = cluster.quorum().current_voters
    return found
