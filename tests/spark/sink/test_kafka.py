"""Source and sink on Apache Kafka, whose brokers do not support two-phase commit.

Needs the Kafka that the benchmarks resolve into their cache, and is left out without it.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.peers.kafka import VERSION, Kafka
from benchmarks.peers.peer import Flush, Unavailable, spawn_server
from tests.fork_server import REPOSITORY
from tests.pyspark_ottla.sink.written import values
from tests.spark import copied
from tests.spark.deployments import Deployment

from ottla.client.wire.cluster import Cluster

CACHE = REPOSITORY / "benchmarks" / ".cache"
START_TIMEOUT_S = 240


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[str]:
    if not (CACHE / f"kafka-{VERSION}" / "resolved").exists():
        pytest.skip(f"Apache Kafka {VERSION} is not in {CACHE}, where `make bench` puts it")
    peer = Kafka(warm_seconds=0)
    try:
        peer.prepare(CACHE)
    except Unavailable as reason:
        pytest.skip(str(reason))
    server = spawn_server(peer, tmp_path / "kafka", Flush.OS)
    try:
        server.wait_until_listening(START_TIMEOUT_S)
        yield server.address
    finally:
        server.stop()


@pytest.mark.timeout(1800)
def test_ordinary_transactions_write_each_row_once_and_are_a_warning(
    kafka: str, local: Deployment, tmp_path: Path
) -> None:
    with Cluster(kafka) as cluster:
        source, target = copied.make_topics(cluster)
        arguments = (kafka, source, target, str(tmp_path))
        done = local.complete("tests.spark.programs.copy_topic", *arguments)
        assert json.loads(done.stdout) == copied.PRINTED
        assert values(cluster, target) == copied.written()
    runs = (target, f"{target}-table")
    for sink_id in runs:
        assert f"sink {sink_id}: the brokers do not take two-phase commit" in done.stderr
    assert "loses that batch" in done.stderr
