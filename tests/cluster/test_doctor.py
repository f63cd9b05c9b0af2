"""`ottla doctor` on a real cluster, before and after a node is killed."""

import json
from typing import Any

import pytest
from tests.cluster.commands import done, nodes, ottla
from tests.cluster.conftest import StartCluster
from tests.cluster.processes import ClusterProcesses, wait_until

pytestmark = pytest.mark.process


def findings(cluster: ClusterProcesses) -> list[dict[str, Any]]:
    finished = ottla(cluster, "doctor", "--json")
    assert finished.returncode in (0, 1), finished.stderr
    found: list[dict[str, Any]] = json.loads(finished.stdout)["findings"]
    return found


def has(found: list[dict[str, Any]], severity: str, problem: str, repair: str) -> bool:
    return any(
        each["severity"] == severity and problem in each["problem"] and repair in each["repair"]
        for each in found
    )


def test_a_cluster_is_healthy_until_it_is_not(start_cluster: StartCluster) -> None:
    cluster = start_cluster(3)
    cluster.wait_for_voters(1, 2, 3)
    done(cluster, "topics", "create", "safe", "--replication-factor", "3")
    wait_until(lambda: ottla(cluster, "doctor").returncode == 0, "a clean bill of health")

    done(cluster, "topics", "create", "single", "--partitions", "6", "--replication-factor", "1")
    two = ("--replication-factor", "2", "--config", "min.insync.replicas=2")
    done(cluster, "topics", "create", "brittle", "--partitions", "6", *two)
    found = findings(cluster)
    assert has(found, "warning", "1 topic has only one replica", "topics reassign single")
    assert has(
        found, "warning", "writes with acks=all stop with one node: brittle", "configs alter"
    )

    cluster.kill(3)
    wait_until(lambda: nodes(cluster)[3]["state"] != "active", "the controller to fence node 3")
    wait_until(
        lambda: has(findings(cluster), "critical", "no leader", "topics unhealthy"),
        "partitions without a leader",
    )
    found = findings(cluster)
    assert has(found, "critical", "node 3 at", "ottla node remove 3")
    assert has(found, "critical", "1 of 3 voters is down", "start node 3")
    assert has(found, "critical", "refuse writes with acks=all", "topics unhealthy")
    assert ottla(cluster, "doctor").returncode == 1
