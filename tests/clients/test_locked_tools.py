"""Kafka's own tools with a node secured by `ottla secure init`, if Kafka is available."""

import subprocess
from collections.abc import Iterator

import pytest
from tests.broker_process import START_TIMEOUT_S
from tests.clients.authorization.brokers import LIBRARIES
from tests.cluster.locked_cluster import HOSTS, LockedCluster

HOST = HOSTS[0]
ACLS, CONFIGS = "org.apache.kafka.tools.AclCommand", "kafka.admin.ConfigCommand"
PRODUCE = "org.apache.kafka.tools.ConsoleProducer"

pytestmark = [
    pytest.mark.process,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not (LIBRARIES / "resolved").exists(),
        reason="Apache Kafka is not in the benchmarks' cache; `make bench` gets it",
    ),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LockedCluster]:
    cluster = LockedCluster(tmp_path_factory.mktemp("tools"))
    done = cluster.ottla("secure", "init", "--hosts", HOST, "--port", str(cluster.port))
    assert done.returncode == 0, done.stderr
    try:
        cluster.start(HOST, "--new-cluster")
        cluster.admin("node", "wait", "1", "--timeout", str(START_TIMEOUT_S))
        yield cluster
    finally:
        cluster.stop()


def tool(cluster: LockedCluster, *words: str, stdin: str = "") -> str:
    """As the printed settings say: in the directory of the administrator's files."""
    server = (
        "--bootstrap-server",
        f"{HOST}:{cluster.port}",
        "--command-config",
        "admin.properties",
    )
    done = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{LIBRARIES}/libs/*", *words, *server],
        cwd=cluster.secure / "clients",
        input=stdin,
        capture_output=True,
        text=True,
        timeout=START_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_acls_are_added_listed_and_removed(cluster: LockedCluster) -> None:
    entry = ("--allow-principal", "User:alice", "--consumer", "--topic", "orders", "--group", "g")
    tool(cluster, ACLS, "--add", *entry)
    listed = tool(cluster, ACLS, "--list")
    assert "(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)" in listed
    assert "User:alice" in cluster.admin("acls", "list")
    tool(cluster, ACLS, "--remove", "--force", *entry)
    assert "User:alice" not in tool(cluster, ACLS, "--list")


def test_users_and_quotas_are_set_and_described(cluster: LockedCluster) -> None:
    user = ("--entity-type", "users", "--entity-name", "bob")
    credential = "SCRAM-SHA-512=[iterations=8192,password=hush-hush]"
    tool(cluster, CONFIGS, "--alter", *user, "--add-config", credential)
    tool(cluster, CONFIGS, "--alter", *user, "--add-config", "producer_byte_rate=1048576")
    described = tool(cluster, CONFIGS, "--describe", *user)
    assert "producer_byte_rate=1048576" in described
    assert "SCRAM-SHA-512=iterations=8192" in described
    assert "hush-hush" not in cluster.log(HOST).read_text()


def test_a_producer_of_java_writes(cluster: LockedCluster) -> None:
    cluster.admin("topics", "create", "lines")
    tool(cluster, PRODUCE, "--topic", "lines", stdin="of Java\n")
    read = cluster.admin("consume", "lines", "--from-beginning", "--no-follow")
    assert read == "of Java\n"


def test_configs_of_a_broker_show_no_secret(cluster: LockedCluster) -> None:
    described = tool(
        cluster, CONFIGS, "--describe", "--all", "--entity-type", "brokers", "--entity-name", "1"
    )
    assert "ssl.keystore.location=" in described
    secrets = [line for line in described.splitlines() if "sensitive=true" in line]
    assert secrets
    assert all(line.split("=")[1].startswith("null") for line in secrets), secrets
