"""The parts of the Spark benchmark, without Spark."""

from pathlib import Path

import pytest
from benchmarks.peers.peer import Unavailable
from benchmarks.results import REFERENCE, SUBJECT, Better, Results, Row
from benchmarks.spark import connector, versions
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
    for _, name, releases in connector.ARTIFACTS:
        (directory / f"{name}-{releases[0]}.jar").touch()
    assert len(connector.resolve(tmp_path)) == len(connector.ARTIFACTS)


def test_without_maven_the_other_source_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="is not installed"):
        connector.resolve(tmp_path)


def test_the_table_of_versions_has_the_newest_row_of_each() -> None:
    document = "# Results\n\n## Rows read\n\n| a | b |\n"
    for spark, rate in (("4.2.1", "1"), ("4.0.4", "2"), ("4.0.5", "3")):
        document = versions.with_row(
            document, versions.row_of(results(float(rate)), spark, "x", "0")
        )
    rows = [line for line in document.splitlines() if line.startswith("| 4.")]
    assert [row.split(" | ")[0] for row in rows] == ["| 4.0.5", "| 4.2.1"]
    assert ["3.00 M/s, 1.50" in row for row in rows] == [True, False]
    assert document.startswith("# Results\n\n## Rows read\n\n| a | b |\n\n## By version")


def test_a_new_document_keeps_the_table_of_versions() -> None:
    row = versions.row_of(results(3), "4.1.4", "4.1.0", "0.2")
    before = versions.with_row("# Old\n", row)
    assert versions.keep_section("# New\n", before) == before.replace("# Old", "# New")
    assert versions.keep_section("# New\n", "# Old\n") == "# New\n"


def results(rate: float) -> Results:
    """The ratio for a source that reads this many million rows/s, next to one that reads two."""
    found = Results()
    row = Row("rows read", "count, 100 B", "M rows/s", Better.HIGHER)
    found.record(row, SUBJECT, rate)
    found.record(row, REFERENCE, 2)
    return found
