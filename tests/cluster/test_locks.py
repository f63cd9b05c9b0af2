"""A cluster secured by `ottla secure init`: nodes use certificates, clients log in."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.broker_process import START_TIMEOUT_S
from tests.cluster.locked_cluster import HOSTS, LockedCluster
from tests.cluster.processes import wait_until

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LockedCluster]:
    cluster = LockedCluster(tmp_path_factory.mktemp("locked"))
    cluster.init()
    try:
        cluster.begin()
        yield cluster
    finally:
        cluster.stop()


def test_records_are_replicated_and_the_administrator_is_served(cluster: LockedCluster) -> None:
    cluster.admin("topics", "create", "orders", "--replication-factor", "3", "--partitions", "3")
    password = (cluster.secure / "clients" / "admin.password").read_text().strip()
    errors: list[object] = []
    producer = Producer(
        {
            "bootstrap.servers": f"{HOSTS[0]}:{cluster.port}",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "admin",
            "sasl.password": password,
            "ssl.ca.location": str(cluster.secure / "clients" / "ca.pem"),
            "acks": "all",
        }
    )
    for number in range(100):
        producer.produce("orders", str(number), on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(START_TIMEOUT_S) == 0
    assert errors == [None] * 100
    read = cluster.admin("consume", "orders", "--from-beginning", "--no-follow")
    assert sorted(map(int, read.split())) == list(range(100))
    assert cluster.admin("node", "list").count("active") == 3


def test_a_node_with_a_certificate_of_another_authority_cannot_join(
    cluster: LockedCluster, tmp_path: Path
) -> None:
    other = "127.0.0.4"
    for directory, hosts in ((tmp_path / "theirs", other), (cluster.secure, other)):
        done = cluster.ottla(
            *("secure", "init", "--hosts", hosts, "--port", str(cluster.port)),
            *("--directory", str(directory)),
        )
        assert done.returncode == 0, done.stderr
    config = cluster.secure / "nodes" / other / "broker.yaml"
    stranger = tmp_path / "stranger" / "broker.yaml"
    stranger.parent.mkdir()
    stranger.write_text(config.read_text())
    theirs = tmp_path / "theirs" / "nodes" / other
    for name in ("node.pem", "users.json"):
        (stranger.parent / name).touch(0o600)
        (stranger.parent / name).write_bytes((theirs / name).read_bytes())
    (stranger.parent / "ca.pem").write_bytes((config.parent / "ca.pem").read_bytes())
    cluster.start(other, "--set", "quorum.join.timeout.ms=2000", config=stranger)
    assert cluster.wait("stranger") != 0
    assert "cannot join a cluster" in cluster.log("stranger").read_text()


def test_a_second_run_changes_nothing(cluster: LockedCluster) -> None:
    def contents() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in cluster.secure.rglob("*") if path.is_file()}

    before = contents()
    hosts = ",".join(HOSTS)
    done = cluster.ottla("secure", "init", "--hosts", hosts, "--port", str(cluster.port))
    assert "nothing was changed" in done.stdout
    assert contents() == before
    assert all(path.stat().st_mode & 0o077 == 0 for path in before)


def test_users_are_added_and_removed(cluster: LockedCluster, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.touch(0o600)
    secret.write_text("hush\n")
    cluster.admin("users", "add", "alice", "--password-file", str(secret))
    assert "alice" in cluster.admin("users", "list")
    mine = tmp_path / "alice.properties"
    mine.touch(0o600)
    text = Path(cluster.command_config).read_text()
    password = (cluster.secure / "clients" / "admin.password").read_text().strip()
    text = text.replace('"admin"', '"alice"').replace(password, "hush")
    mine.write_text(text.replace("=ca.pem", f"={cluster.secure}/clients/ca.pem"))
    done = cluster.ottla("node", "list", "--command-config", str(mine))
    assert "User:alice has no DESCRIBE access to the cluster" in done.stderr
    rights = ("acls", "add", "--allow-principal", "alice", "--operation", "describe", "--cluster")
    cluster.admin(*rights)
    wait_until(
        lambda: cluster.ottla("node", "list", "--command-config", str(mine)).returncode == 0,
        "the entry reaches every node",
    )
    cluster.admin("users", "remove", "alice")
    done = cluster.ottla("node", "list", "--command-config", str(mine))
    assert done.returncode != 0
    assert "invalid credentials" in done.stderr
    assert "hush" not in done.stderr
    mine.chmod(0o644)
    done = cluster.ottla("node", "list", "--command-config", str(mine))
    assert "others can read it" in done.stderr
    secret.chmod(0o644)
    login = ("--password-file", str(secret), "--command-config", cluster.command_config)
    done = cluster.ottla("users", "add", "bob", *login)
    assert f"--password-file {secret} has a secret and others can read it" in done.stderr
    assert "hush" not in done.stderr


def test_a_node_that_was_killed_comes_back(cluster: LockedCluster) -> None:
    cluster.kill(HOSTS[1])
    cluster.start(HOSTS[1])
    cluster.admin("node", "wait", "2", "--timeout", str(START_TIMEOUT_S))


def test_certificates_and_passwords_are_rotated_while_the_cluster_serves(
    cluster: LockedCluster, tmp_path: Path
) -> None:
    topic = ("topics", "create", "rotated", "--replication-factor", "3", "--partitions", "3")
    cluster.admin(*topic)
    before = {host: certificate(host, cluster.port) for host in HOSTS}
    for host in HOSTS:
        done = cluster.ottla("secure", "renew", "--hosts", host)
        assert done.returncode == 0, done.stderr
        wait_until(
            lambda host=host: certificate(host, cluster.port) != before[host],
            f"{host} takes up its new certificate",
        )
        cluster.admin("produce", "rotated", host)
    read = cluster.admin("consume", "rotated", "--from-beginning", "--no-follow")
    assert sorted(read.split()) == sorted(HOSTS)
    assert cluster.admin("node", "list").count("active") == 3

    properties = Path(cluster.command_config)
    old_text = properties.read_text()
    old = (cluster.secure / "clients" / "admin.password").read_text().strip()
    secret = tmp_path / "secret"
    secret.touch(0o600)
    secret.write_text("a new one\n")
    cluster.admin("users", "add", "admin", "--password-file", str(secret))
    refused = cluster.ottla("node", "list", "--command-config", cluster.command_config)
    assert "invalid credentials" in refused.stderr
    properties.write_text(old_text.replace(old, "a new one"))
    assert cluster.admin("node", "list").count("active") == 3
    secret.write_text(old)
    cluster.admin("users", "add", "admin", "--password-file", str(secret))
    properties.write_text(old_text)


def certificate(host: str, port: int) -> str:
    return ssl.get_server_certificate((host, port))
