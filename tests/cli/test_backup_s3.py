"""Backups on an S3 server: moto's, if it is installed (`pip install moto[server]`)."""

import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.cli.command import start_ottla
from tests.cli.conftest import Ottla
from tests.client.wire.batches import batch
from tests.client.wire.raw_logs import read_raw, without_epochs
from tests.ports import HOST, ReservedPort

from ottla.cli.backups.store import open_store
from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.producing import produce
from ottla.client.wire.topics import ensure_topic
from ottla.testing import EmbeddedBroker

pytestmark = pytest.mark.process

PARTITIONS = [TopicPartition("stored", index) for index in range(6)]
PATIENCE_S = 120.0


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """The URL of a folder in an empty bucket."""
    pytest.importorskip("obstore")
    server = shutil.which("moto_server")
    if server is None:
        pytest.skip("there is no moto_server here")
    port = ReservedPort()
    url = f"http://{HOST}:{port}"
    values = {
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": url,
        "AWS_ALLOW_HTTP": "true",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    with (
        (tmp_path / "moto.log").open("wb") as log,
        subprocess.Popen([server, "-H", HOST, "-p", str(port)], stdout=log, stderr=log) as process,
    ):
        try:
            _make_bucket(url, process)
            yield "s3://bucket/folder"
        finally:
            process.kill()


def _make_bucket(url: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with suppress(urllib.error.URLError, ConnectionError):
            request = urllib.request.Request(f"{url}/bucket", method="PUT")
            urllib.request.urlopen(request, timeout=PATIENCE_S).close()
            return
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_backup_that_was_killed_is_gone_on_with_and_comes_back(ottla: Ottla, s3: str) -> None:
    with EmbeddedBroker() as source, EmbeddedBroker() as target:
        with Cluster(source.bootstrap_servers, retry_timeout_ms=120_000) as cluster:
            ensure_topic(cluster, "stored", partitions=len(PARTITIONS))
            for topic_partition in PARTITIONS:
                for _ in range(3):
                    produce(cluster, {topic_partition: batch(os.urandom(900_000))})
            logs = [
                without_epochs(read_raw(cluster, topic_partition)) for topic_partition in PARTITIONS
            ]
        arguments = ("backup", "--to", s3, "--topic", "stored", "--threads", "1")
        killed = start_ottla(*arguments, bootstrap=source.bootstrap_servers)
        store = open_store(s3)
        deadline = time.monotonic() + PATIENCE_S
        while not store.names(".log") and killed.poll() is None:
            assert time.monotonic() < deadline
        killed.kill()
        killed.communicate()
        outcome = ottla(*arguments, bootstrap=source.bootstrap_servers)
        assert outcome.exit_code == 0, outcome.errors
        assert ottla("backup", "verify", s3).exit_code == 0
        assert len(store.names(".log")) == len(PARTITIONS)
        restored = ottla("restore", "--from", s3, bootstrap=target.bootstrap_servers)
        assert restored.exit_code == 0, restored.errors
        with Cluster(target.bootstrap_servers, retry_timeout_ms=120_000) as cluster:
            assert [
                without_epochs(read_raw(cluster, topic_partition)) for topic_partition in PARTITIONS
            ] == logs


def test_what_the_server_refuses_is_one_line(ottla: Ottla, s3: str) -> None:
    assert s3
    with EmbeddedBroker() as source:
        with Cluster(source.bootstrap_servers, retry_timeout_ms=120_000) as cluster:
            ensure_topic(cluster, "stored", partitions=1)
        arguments = ("backup", "--to", "s3://nowhere/x", "--topic", "stored")
        outcome = ottla(*arguments, bootstrap=source.bootstrap_servers)
    assert outcome.exit_code == 1
    (line,) = outcome.errors.splitlines()
    assert "s3://nowhere/x: NoSuchBucket" in line
