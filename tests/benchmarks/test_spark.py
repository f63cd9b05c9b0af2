"""What the benchmark of the Spark source is made of, without Spark."""

from pathlib import Path

import pytest
from benchmarks.peers.peer import Unavailable
from benchmarks.spark import connector
from benchmarks.spark.fill import fill
from tests.client.topics import create_topic

from ottla.client.wire.cluster import Cluster
from ottla.client.wire.fetching import Fetcher
from ottla.client.wire.offsets import LATEST, list_offsets
from ottla.protocol.topics import TopicPartition
from ottla.records.columnar.columns import Column
from ottla.records.columnar.decoder import decode_batches
from ottla.records.isolation import scan_batches


def test_a_filled_topic_has_its_rows_sizes_and_times(bootstrap: str) -> None:
    with Cluster(bootstrap) as cluster:
        topic = create_topic(cluster, partitions=2)
        first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
        fill(bootstrap, topic, partitions=2, rows=1_000, value_size=100, first_ms=5_000)
        assert list_offsets(cluster, {first: LATEST, second: LATEST}) == {first: 500, second: 500}
        assert list_offsets(cluster, {second: 5_123}) == {second: 123}
        with Fetcher(cluster, first) as fetcher:
            records = fetcher.fetch(0).records
            scan = scan_batches(records, 0, 500)
            (chunk,) = decode_batches(records, scan.batches, {Column.VALUE}, 0, 500)
    sizes = [len(value) for value in chunk.columns[Column.VALUE].to_pylist()]
    assert len(scan.batches) > 1
    assert 80 <= min(sizes) < max(sizes) <= 120


def test_jars_that_are_there_are_not_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    directory = tmp_path / "spark-sql-kafka"
    directory.mkdir()
    for _, name, versions in connector.ARTIFACTS:
        (directory / f"{name}-{versions[0]}.jar").touch()
    assert len(connector.resolve(tmp_path)) == len(connector.ARTIFACTS)


def test_without_maven_the_other_source_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="is not installed"):
        connector.resolve(tmp_path)
