"""Migration from Apache Kafka, if available, while producers write."""

import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.peers.kafka import VERSION, Kafka
from benchmarks.peers.peer import Flush
from tests.cli.conftest import Ottla
from tests.cli.test_backup import ORDERS, write_orders
from tests.client.wire.raw_logs import read_raw, without_epochs
from tests.fork_server import REPOSITORY
from tests.ports import HOST, ReservedPort

from ottla.client.wire.cluster import Cluster
from ottla.client.wire.errors import Unreachable
from ottla.client.wire.groups import commit_offsets, committed_offsets
from ottla.client.wire.offsets import LATEST, list_offsets
from ottla.client.wire.topics import ensure_topic
from ottla.records.batch import iterate_headers
from ottla.testing import EmbeddedBroker

pytestmark = pytest.mark.process

CACHE = REPOSITORY / "benchmarks" / ".cache"
READY_S = 240


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not (CACHE / f"kafka-{VERSION}" / "resolved").exists():
        pytest.skip(f"Apache Kafka {VERSION} is not in the benchmarks' cache; `make bench` gets it")
    directory = tmp_path_factory.mktemp("kafka")
    peer = Kafka(0)
    peer.prepare(CACHE)
    port = ReservedPort().number
    peer.format(directory, port)
    with (directory / "kafka.log").open("wb") as log:
        process = subprocess.Popen(peer.command(directory, port, Flush.OS), stdout=log, stderr=log)
    try:
        _wait_until_it_serves(process, f"{HOST}:{port}", directory / "kafka.log")
        yield f"{HOST}:{port}"
    finally:
        process.terminate()
        process.wait(60)


def _wait_until_it_serves(process: "subprocess.Popen[bytes]", bootstrap: str, log: Path) -> None:
    deadline = time.monotonic() + READY_S
    while True:
        try:
            with Cluster(bootstrap, retry_timeout_ms=1) as cluster:
                cluster.topics()
                return
        except Unreachable:
            assert process.poll() is None, log.read_text()[-2000:]
            assert time.monotonic() < deadline, log.read_text()[-2000:]
            time.sleep(0.2)


def test_every_record_comes_once_with_its_offset(ottla: Ottla, kafka: str) -> None:
    stopping = threading.Event()
    rounds: list[int] = []

    def write() -> None:
        with Cluster(kafka, retry_timeout_ms=240_000) as cluster:
            while not stopping.is_set():
                write_orders(cluster, len(rounds))
                rounds.append(1)

    with (
        Cluster(kafka, retry_timeout_ms=240_000) as source,
        EmbeddedBroker() as broker,
        Cluster(broker.bootstrap_servers, retry_timeout_ms=240_000) as target,
    ):
        config = {"retention.ms": "-1", "remote.storage.enable": "false"}
        ensure_topic(source, "orders", partitions=2, config=config)
        writer = threading.Thread(target=write)
        writer.start()
        command = ("migrate", "--from", kafka, "--json")
        try:
            for _ in range(3):
                passed = ottla(*command, bootstrap=broker.bootstrap_servers)
                assert passed.exit_code == 0, passed.errors
        finally:
            stopping.set()
            writer.join()
        commit_offsets(source, "readers", {ORDERS[0]: 5})
        cut_over = ("--cut-over", "--interval", "0.1", "--wait", "240")
        last = ottla(*command, *cut_over, bootstrap=broker.bootstrap_servers)
        assert (last.exit_code, last.json["cut_over"]) == (0, True), last.errors
        for topic_partition in ORDERS:
            data = read_raw(target, topic_partition)
            assert without_epochs(data) == without_epochs(read_raw(source, topic_partition))
            offsets = [header.base_offset for _, header in iterate_headers(data)]
            assert offsets == sorted(set(offsets))
            ends = [
                list_offsets(each, {topic_partition: LATEST})[topic_partition]
                for each in (source, target)
            ]
            assert ends[0] == ends[1]
        assert any(header.is_control for _, header in iterate_headers(data))
        assert committed_offsets(target, "readers", ORDERS) == {ORDERS[0]: 5}
