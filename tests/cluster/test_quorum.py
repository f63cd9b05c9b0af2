"""Real processes form a quorum, lose its leader, return and catch up."""

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient, NewTopic
from kio.schema.api_versions.v3.request import ApiVersionsRequest
from tests.clients.wire import Wire
from tests.cluster.clients import TIMEOUT_S, changed
from tests.cluster.conftest import StartCluster
from tests.cluster.processes import PATIENT, ClusterProcesses, hasty, wait_until

pytestmark = pytest.mark.process

# A snapshot after a few records.
EAGER_SNAPSHOTS = ("--set", "metadata.log.max.record.bytes.between.snapshots=2000")


def create_topic(cluster: ClusterProcesses, name: str, node_id: int | None = None) -> None:
    bootstrap = cluster.bootstrap if node_id is None else cluster.bootstrap_of(node_id)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topic = NewTopic(name, num_partitions=1, replication_factor=1)
    changed(admin.create_topics([topic])[name], KafkaError.TOPIC_ALREADY_EXISTS)


def topics(cluster: ClusterProcesses, node_id: int) -> set[str]:
    """According to that node."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_of(node_id)})
    return set(admin.list_topics(timeout=TIMEOUT_S).topics)


def tells_its_versions(bootstrap: str) -> bool:
    """Whether a node that does not serve clients yet answers ApiVersions."""
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    try:
        with Wire(bootstrap) as wire:
            return bool(wire.call(request).api_keys)
    except ConnectionRefusedError:
        return False


def test_three_nodes_form_a_quorum_and_any_takes_changes(start_cluster: StartCluster) -> None:
    cluster = start_cluster(3, *PATIENT)
    cluster.wait_for_voters(1, 2, 3)
    for node_id in cluster.ids:
        create_topic(cluster, f"through-{node_id}", node_id)
        assert f"through-{node_id}" in topics(cluster, node_id)
    for node_id in cluster.ids:
        described = cluster.quorum(node_id)
        assert described.leader_id == 1
        wait_until(lambda node_id=node_id: len(topics(cluster, node_id)) == 3)


def test_of_five_nodes_three_vote_and_two_observe(start_cluster: StartCluster) -> None:
    cluster = start_cluster(5, *PATIENT)
    wait_until(lambda: len(cluster.voters()) == 3)
    create_topic(cluster, "orders")
    for node_id in cluster.ids:
        wait_until(lambda node_id=node_id: "orders" in topics(cluster, node_id))

    def is_complete() -> bool:
        described = cluster.quorum()
        voters = [voter.replica_id for voter in described.current_voters]
        observers = [observer.replica_id for observer in described.observers]
        return len(voters) == 3 and sorted(voters + observers) == [*range(1, 6)]

    wait_until(is_complete, "all nodes in the quorum")


def test_when_the_leader_is_killed_another_leads_and_it_catches_up(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster(3)
    cluster.wait_for_voters(1, 2, 3)
    create_topic(cluster, "before")
    for round_number in range(2):
        leader = cluster.leader()
        cluster.kill(leader)
        wait_until(lambda leader=leader: cluster.leader() != leader)
        create_topic(cluster, f"after-{round_number}")
        cluster.restart(leader)
        wait_until(
            lambda leader=leader, name=f"after-{round_number}": name in topics(cluster, leader)
        )
    assert sorted(cluster.voters()) == [1, 2, 3]


def test_a_node_that_was_away_catches_up_by_a_snapshot(start_cluster: StartCluster) -> None:
    cluster = start_cluster(3, *EAGER_SNAPSHOTS)
    cluster.wait_for_voters(1, 2, 3)
    away = next(node_id for node_id in cluster.ids if node_id != cluster.leader())
    cluster.kill(away)
    for number in range(40):
        create_topic(cluster, f"topic-{number}")
    metadata = cluster.node(away).data / "__cluster_metadata-0"
    before = {path.name for path in metadata.glob("*.checkpoint")}
    cluster.restart(away)
    wait_until(lambda: "topic-39" in topics(cluster, away))
    assert topics(cluster, away) == {f"topic-{number}" for number in range(40)}
    assert {path.name for path in metadata.glob("*.checkpoint")} - before
    assert "a snapshot of all before" in cluster.node(away).log_text()


def test_a_leader_that_is_paused_is_replaced_and_follows_when_it_is_back(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster(3, *hasty())
    cluster.wait_for_voters(1, 2, 3)
    before = cluster.quorum()
    leader = before.leader_id
    with cluster.paused(leader):
        wait_until(lambda: cluster.leader() != leader)
        awake = cluster.awake[0]
        create_topic(cluster, "meanwhile", awake)
    wait_until(lambda: "meanwhile" in topics(cluster, leader))
    assert cluster.quorum(leader).leader_epoch > before.leader_epoch


def test_all_nodes_come_back_after_all_were_killed(start_cluster: StartCluster) -> None:
    cluster = start_cluster(3)
    cluster.wait_for_voters(1, 2, 3)
    create_topic(cluster, "kept")
    for node_id in cluster.ids:
        cluster.kill(node_id)
    cluster.restart(1, wait=False)
    wait_until(lambda: tells_its_versions(cluster.bootstrap_of(1)), "an answer of the first alone")
    cluster.restart(2, wait=False)
    cluster.restart(3, wait=False)
    for node_id in cluster.ids:
        cluster.node(node_id).wait_until_ready()
        wait_until(lambda node_id=node_id: "kept" in topics(cluster, node_id))


def test_voters_spread_over_the_racks_that_come(start_cluster: StartCluster) -> None:
    """As with shards: the first machine has all voters until others join."""
    cluster = start_cluster(3, "--set", "broker.rack=a")
    cluster.wait_for_voters(1, 2, 3)
    for node_id, rack in ((4, "b"), (5, "b"), (6, "c")):
        cluster.add(node_id, "--set", f"broker.rack={rack}")
    racks = {1: "a", 2: "a", 3: "a", 4: "b", 5: "b", 6: "c"}

    def is_spread() -> bool:
        return sorted(racks[voter] for voter in cluster.voters()) == ["a", "b", "c"]

    wait_until(is_spread, "a voter in each rack")
    create_topic(cluster, "after")
