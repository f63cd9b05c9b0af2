"""Credentials between nodes are renewed node by node, and no node ever refuses another.

The steps are those of docs/OPERATIONS.md. After each step on each node, that node is killed and
restarted, so that all its connections are new, and a record must reach all replicas.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.broker_process import START_TIMEOUT_S
from tests.cluster.locked_cluster import HOSTS, LockedCluster
from tests.cluster.processes import wait_until

from ottla.node.users_file import format_users, read_users
from ottla.security.scram import SCRAM_MECHANISMS, new_credential

pytestmark = pytest.mark.process

TOPIC, PARTITIONS = "rotated", 3
TAKEN_UP = "has loaded its new certificates"
SHA_512 = SCRAM_MECHANISMS["SCRAM-SHA-512"]
OLD, NEW = ("ottla-node", "the old one"), ("ottla-node-2", "the new one")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LockedCluster]:
    cluster = LockedCluster(tmp_path)
    cluster.init()
    try:
        yield cluster
    finally:
        cluster.stop()


def create_topic(cluster: LockedCluster) -> None:
    """A topic whose records are acknowledged once all three nodes have them."""
    replicas = ("--replication-factor", "3", "--config", "min.insync.replicas=3")
    cluster.admin("topics", "create", TOPIC, "--partitions", str(PARTITIONS), *replicas)


def check(cluster: LockedCluster, host: str) -> None:
    """Connections to and from the node work, and records reach every replica."""
    cluster.restart(host)
    password = (cluster.secure / "clients" / "admin.password").read_text().strip()
    errors: list[object] = []
    producer = Producer(
        {
            "bootstrap.servers": ",".join(f"{host_name}:{cluster.port}" for host_name in HOSTS),
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "admin",
            "sasl.password": password,
            "ssl.ca.location": str(cluster.secure / "clients" / "ca.pem"),
            "acks": "all",
            "message.timeout.ms": START_TIMEOUT_S * 1000,
        }
    )
    for partition in range(PARTITIONS):
        producer.produce(
            TOPIC,
            host,
            partition=partition,
            on_delivery=lambda error, _: errors.append(error),
        )
    assert producer.flush(START_TIMEOUT_S) == 0
    assert errors == [None] * PARTITIONS


def replace_file(path: Path, content: bytes) -> None:
    fresh = path.with_suffix(".new")
    fresh.touch(0o600)
    fresh.write_bytes(content)
    fresh.replace(path)


def take_up(cluster: LockedCluster, host: str, name: str, content: bytes) -> None:
    """Replace a file of the node and wait until both of its listeners use it."""
    log = cluster.log(host)
    before = log.read_text().count(TAKEN_UP)
    replace_file(cluster.node(host) / name, content)
    wait_until(lambda: log.read_text().count(TAKEN_UP) == before + 2, f"{host} takes up {name}")


def test_a_new_authority_is_taken_up_node_by_node(cluster: LockedCluster, tmp_path: Path) -> None:
    cluster.begin()
    create_topic(cluster)
    new = tmp_path / "secure-2"
    hosts = ("--hosts", ",".join(HOSTS), "--port", str(cluster.port))
    done = cluster.ottla("secure", "init", *hosts, "--directory", str(new))
    assert done.returncode == 0, done.stderr
    old_ca, new_ca = ((directory / "ca.pem").read_bytes() for directory in (cluster.secure, new))
    clients = Path(cluster.command_config).with_name("ca.pem")

    replace_file(clients, old_ca + new_ca)
    for host in HOSTS:
        take_up(cluster, host, "ca.pem", old_ca + new_ca)
    for host in HOSTS:
        take_up(cluster, host, "node.pem", (new / "nodes" / host / "node.pem").read_bytes())
        check(cluster, host)
    replace_file(clients, new_ca)
    for host in HOSTS:
        take_up(cluster, host, "ca.pem", new_ca)
        check(cluster, host)


def log_in_as(node: Path, user: tuple[str, str], *super_users: str) -> None:
    """Nodes log in with a password instead of a certificate, in the files of `secure init`."""
    name, password = user
    config = node / "broker.yaml"
    text = config.read_text().replace("NODES:SSL", "NODES:SASL_SSL")
    text = text.replace("listener.name.nodes.ssl.client.auth: required\n", "")
    text = re.sub(r".*jaas\.config.*\n", "", text)
    login = f'ScramLoginModule required username="{name}" password="{password}";'
    text += f"listener.name.nodes.scram-sha-512.sasl.jaas.config: {json.dumps(login)}\n"
    users = ";".join(f"User:{super_user}" for super_user in ("admin", *super_users))
    config.write_text(re.sub(r"super\.users: .*", f"super.users: {users}", text))


def know(node: Path, *users: tuple[str, str]) -> None:
    """Adds users next to the administrator, in the file used while the cluster starts."""
    path = node / "users.json"
    known = {user: kept for user, kept in read_users(str(path)).items() if user[0] == "admin"}
    for name, password in users:
        salt = name.encode() * 2
        known[name, int(SHA_512)] = new_credential(SHA_512, password, salt, 4096)
    replace_file(path, format_users(known).encode())


def test_a_new_password_of_the_nodes_is_taken_up_node_by_node(
    cluster: LockedCluster, tmp_path: Path
) -> None:
    for host in HOSTS:
        know(cluster.node(host), OLD)
        log_in_as(cluster.node(host), OLD, OLD[0])
    cluster.begin()
    create_topic(cluster)

    secret = tmp_path / "secret"
    secret.touch(0o600)
    secret.write_text(f"{NEW[1]}\n")
    cluster.admin("users", "add", NEW[0], "--password-file", str(secret))
    for host in HOSTS:
        know(cluster.node(host), OLD, NEW)
        log_in_as(cluster.node(host), OLD, OLD[0], NEW[0])
        check(cluster, host)
    for host in HOSTS:
        log_in_as(cluster.node(host), NEW, OLD[0], NEW[0])
        check(cluster, host)
    cluster.admin("users", "remove", OLD[0])
    for host in HOSTS:
        know(cluster.node(host), NEW)
        log_in_as(cluster.node(host), NEW, NEW[0])
        check(cluster, host)
    assert OLD[0] not in cluster.admin("users", "list").replace(NEW[0], "")
    for host in HOSTS:
        text = cluster.log(host).read_text()
        assert "login_refused" not in text
        assert NEW[1] not in text
