"""Nodes that log in to each other with a password (SCRAM) instead of a certificate."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker_process import START_TIMEOUT_S
from tests.cluster.locked_cluster import HOSTS, LockedCluster

from ottla.node.users_file import format_users, read_users
from ottla.security.scram import SCRAM_MECHANISMS, new_credential

pytestmark = pytest.mark.process

NODES, PASSWORD = HOSTS[:2], 'no"certificate'
SHA_512 = SCRAM_MECHANISMS["SCRAM-SHA-512"]


def use_passwords(node: Path, password: str) -> None:
    """Replaces certificates by logins in the configuration from `secure init`."""
    config = node / "broker.yaml"
    text = config.read_text().replace("NODES:SSL", "NODES:SASL_SSL")
    text = text.replace("listener.name.nodes.ssl.client.auth: required\n", "")
    escaped = password.replace('"', '\\"')
    login = f'ScramLoginModule required username="ottla-node" password="{escaped}";'
    text += f"listener.name.nodes.scram-sha-512.sasl.jaas.config: {json.dumps(login)}\n"
    config.write_text(text)
    users = dict(read_users(str(node / "users.json")))
    users["ottla-node", int(SHA_512)] = new_credential(SHA_512, PASSWORD, b"0123456789", 4096)
    (node / "users.json").write_text(format_users(users))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LockedCluster]:
    cluster = LockedCluster(tmp_path)
    cluster.init()
    try:
        yield cluster
    finally:
        cluster.stop()


def test_nodes_join_replicate_and_come_back_with_passwords(cluster: LockedCluster) -> None:
    for host in NODES:
        use_passwords(cluster.secure / "nodes" / host, PASSWORD)
    cluster.start(NODES[0], "--new-cluster")
    cluster.start(NODES[1])
    cluster.admin("node", "wait", "2", "--timeout", str(START_TIMEOUT_S))
    cluster.admin("topics", "create", "orders", "--replication-factor", "2")
    cluster.admin("produce", "orders", "first")

    # When all nodes start at once, none knows the users in the metadata yet.
    for host in NODES:
        cluster.kill(host)
    for host in NODES:
        cluster.start(host)
    for number in ("1", "2"):
        cluster.admin("node", "wait", number, "--timeout", str(START_TIMEOUT_S))
    assert cluster.admin("consume", "orders", "--from-beginning", "--no-follow") == "first\n"

    stranger = cluster.secure / "nodes" / HOSTS[2]
    use_passwords(stranger, "a guess")
    cluster.start(HOSTS[2], "--set", "quorum.join.timeout.ms=3000")
    assert cluster.wait(HOSTS[2]) != 0
    assert "cannot join a cluster" in cluster.log(HOSTS[2]).read_text()
    assert PASSWORD not in cluster.log(NODES[0]).read_text()
