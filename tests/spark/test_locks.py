"""Pipelines and tables of a secured cluster: the login comes from a profile or a file."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker_process import START_TIMEOUT_S
from tests.cluster.locked_cluster import HOSTS, LockedCluster

HOST = HOSTS[0]
SPARK_TIMEOUT_S = 800  # The machine may be busy.
PIPELINE = """\
name: copy
sources:
  lines: {topic: lines, format: json, schema: n int}
steps:
  even: {sql: "select n from lines where n % 2 = 0"}
sinks:
  out: {from: even, topic: out}
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LockedCluster]:
    cluster = LockedCluster(tmp_path)
    done = cluster.ottla("secure", "init", "--hosts", HOST, "--port", str(cluster.port))
    assert done.returncode == 0, done.stderr
    try:
        cluster.start(HOST, "--new-cluster")
        cluster.admin("node", "wait", "1", "--timeout", str(START_TIMEOUT_S))
        yield cluster
    finally:
        cluster.stop()


@pytest.mark.timeout(2700)
def test_a_pipeline_and_a_table_log_in(cluster: LockedCluster) -> None:
    password = (cluster.secure / "clients" / "admin.password").read_text().strip()
    cluster.admin("topics", "create", "lines")
    cluster.admin("produce", "lines", *(json.dumps({"n": n}) for n in range(6)))
    added = cluster.ottla("profile", "add", "prod", "--command-config", cluster.command_config)
    assert added.returncode == 0, added.stderr
    (cluster.directory / "copy.yaml").write_text(PIPELINE)

    # The source, the sink and topic creation log in with the profile.
    ran = cluster.ottla(
        "pipeline", "run", "copy.yaml", "--once", "--json", timeout_s=SPARK_TIMEOUT_S
    )
    assert ran.returncode == 0, ran.stderr
    (sink,) = json.loads(ran.stdout)["sinks"]
    assert (sink["rows_in"], sink["rows_out"]) == (6, 3)
    written = cluster.ottla("consume", "out", "--from-beginning", "--no-follow")
    assert sorted(map(json.loads, written.stdout.split("\n")[:-1]), key=str) == [
        {"n": n} for n in (0, 2, 4)
    ]

    removed = cluster.ottla("profile", "remove", "prod")
    assert removed.returncode == 0, removed.stderr
    table = f"delta:{cluster.directory}/lines"
    login = ("--command-config", cluster.command_config)
    synced = cluster.ottla(
        "table", "sync", "lines", "--to", table, "--once", *login, timeout_s=SPARK_TIMEOUT_S
    )
    assert synced.returncode == 0, synced.stderr
    checked = cluster.ottla(
        "table", "check", table, "--topic", "lines", *login, timeout_s=SPARK_TIMEOUT_S
    )
    assert checked.returncode == 0, checked.stderr

    outputs = [done.stdout + done.stderr for done in (ran, written, synced, checked, added)]
    assert not any(password in text for text in outputs)
