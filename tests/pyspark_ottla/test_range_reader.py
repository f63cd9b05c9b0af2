from collections.abc import Iterator
from typing import Any

import pytest
from tests.client.topics import create_topic, delete_topic
from tests.pyspark_ottla.rows import schema, write

from ottla.client.wire.cluster import Cluster
from ottla.protocol.topics import TopicPartition
from pyspark_ottla import cluster_pool
from pyspark_ottla.cluster_pool import close_idle
from pyspark_ottla.data_loss import DataLoss
from pyspark_ottla.offset_ranges import OffsetRange
from pyspark_ottla.range_reader import read_range
from pyspark_ottla.source_options import parse_source_options


@pytest.fixture(autouse=True)
def _metadata_that_stays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    close_idle()
    monkeypatch.setattr(cluster_pool, "_METADATA_S_MAX", 1e9)
    yield
    close_idle()


def topic_id(cluster: Cluster, topic: str) -> str:
    return str(cluster.topics([topic])[topic].id)


def read(bootstrap: str, topic: str, planned_for: str) -> list[Any]:
    """The values of the first two records."""
    options = parse_source_options({"kafka.bootstrap.servers": bootstrap, "subscribe": topic})
    wanted = OffsetRange(topic, 0, 0, 2, planned_for)
    batches = read_range(options, schema("value"), wanted)
    return [value for batch in batches for value in batch.column(0).to_pylist()]


def test_a_worker_that_knows_an_older_topic_asks_anew(
    cluster: Cluster, bootstrap: str, topic: str
) -> None:
    write(cluster, TopicPartition(topic, 0), b"a", b"b")
    assert read(bootstrap, topic, topic_id(cluster, topic)) == [b"a", b"b"]
    delete_topic(cluster, topic)
    create_topic(cluster, name=topic)
    write(cluster, TopicPartition(topic, 0), b"c", b"d")
    assert read(bootstrap, topic, topic_id(cluster, topic)) == [b"c", b"d"]


def test_records_of_a_topic_that_was_made_again_are_not_taken_for_the_planned_ones(
    cluster: Cluster, bootstrap: str, topic: str
) -> None:
    write(cluster, TopicPartition(topic, 0), b"a", b"b")
    planned = topic_id(cluster, topic)
    assert read(bootstrap, topic, planned) == [b"a", b"b"]
    delete_topic(cluster, topic)
    create_topic(cluster, name=topic)
    write(cluster, TopicPartition(topic, 0), b"c", b"d")
    with pytest.raises(DataLoss, match="deleted and made again"):
        read(bootstrap, topic, planned)
