import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from tests.client.topics import create_topic, delete_topic
from tests.pyspark_ottla.rows import add_partitions, write

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.groups import committed_offsets
from pyspark_ottla.pipeline.progress import reported_offset
from pyspark_ottla.spark_api import HAS_LIMITS


@pytest.fixture
def topic(cluster: Cluster) -> str:
    return create_topic(cluster)


class Streams:
    """Queries that collect a topic's rows, each from the same checkpoint."""

    def __init__(self, spark: Any, bootstrap: str, directory: Path) -> None:
        self._spark = spark
        self._bootstrap = bootstrap
        self._checkpoint = directory / "checkpoint"
        self.batches: list[list[bytes]] = []
        self._queries: list[Any] = []

    def start(self, *, available_now: bool = True, **options: str) -> Any:
        settings = {"startingOffsets": "earliest"} | options
        reader = self._spark.readStream.format("ottla").schema("value binary")
        reader = reader.option("kafka.bootstrap.servers", self._bootstrap).options(**settings)
        writer = reader.load().writeStream.foreachBatch(self._keep)
        writer = writer.option("checkpointLocation", str(self._checkpoint))
        if available_now:
            writer = writer.trigger(availableNow=True)
        self._queries.append(writer.start())
        return self._queries[-1]

    def run(self, **options: Any) -> Any:
        query = self.start(**options)
        query.awaitTermination()
        return query

    def rows(self) -> list[bytes]:
        return sorted(value for batch in self.batches for value in batch)

    def stop(self) -> None:
        for query in self._queries:
            query.stop()

    def _keep(self, df: Any, _batch_id: int) -> None:
        self.batches.append([row.value for row in df.collect()])


@pytest.fixture
def streams(spark: Any, bootstrap: str, tmp_path: Path) -> Iterator[Streams]:
    streams = Streams(spark, bootstrap, tmp_path)
    yield streams
    streams.stop()


def test_each_record_once_over_restarts_in_limited_batches(
    cluster: Cluster, topic: str, streams: Streams
) -> None:
    topic_partition = TopicPartition(topic, 0)
    write(cluster, topic_partition, *(b"%02d" % number for number in range(20)))
    streams.run(subscribe=topic, maxOffsetsPerTrigger="8")
    assert [len(batch) for batch in streams.batches] == ([8, 8, 4] if HAS_LIMITS else [20])
    write(cluster, topic_partition, b"20", b"21")
    query = streams.run(subscribe=topic, maxOffsetsPerTrigger="8")
    assert streams.rows() == [b"%02d" % number for number in range(22)]
    (progress,) = query.lastProgress["sources"]
    assert reported_offset(progress["endOffset"])[topic] == {"0": 22}


def test_a_query_starts_again_when_its_driver_died_in_the_first_batch(
    cluster: Cluster, topic: str, streams: Streams, tmp_path: Path
) -> None:
    """Before it had renamed the file with the offsets."""
    write(cluster, TopicPartition(topic, 0), b"first")
    offsets = tmp_path / "checkpoint" / "offsets"
    offsets.mkdir(parents=True)
    offsets.joinpath(".0.d3209d4f-f812-4b83-871d-85b2b93fe129.tmp").write_text("v1\n")
    streams.run(subscribe=topic)
    assert streams.rows() == [b"first"]


def test_a_running_query_sees_records_partitions_and_topics_that_come(
    cluster: Cluster, topic: str, streams: Streams
) -> None:
    query = streams.start(subscribePattern=f"{topic}.*", available_now=False)
    write(cluster, TopicPartition(topic, 0), b"a")
    query.processAllAvailable()
    assert streams.rows() == [b"a"]
    add_partitions(cluster, topic, 2)
    other = create_topic(cluster, name=f"{topic}-other")
    write(cluster, TopicPartition(topic, 1), b"b")
    write(cluster, TopicPartition(other, 0), b"c")
    query.processAllAvailable()
    assert streams.rows() == [b"a", b"b", b"c"]


def test_others_see_how_far_a_query_is(cluster: Cluster, topic: str, streams: Streams) -> None:
    topic_partition = TopicPartition(topic, 0)
    query = streams.start(subscribe=topic, commitGroup=f"{topic}-group", available_now=False)
    write(cluster, topic_partition, b"a", b"b")
    query.processAllAvailable()
    write(cluster, topic_partition, b"c")
    query.processAllAvailable()  # Spark commits a batch once it has planned the next.
    assert committed_offsets(cluster, f"{topic}-group", [topic_partition])[topic_partition] >= 2


def test_a_topic_that_was_made_again_stops_a_query_or_is_read_from_its_start(
    cluster: Cluster, topic: str, streams: Streams
) -> None:
    topic_partition = TopicPartition(topic, 0)
    write(cluster, topic_partition, b"a", b"b")
    streams.run(subscribe=topic)
    delete_topic(cluster, topic)
    create_topic(cluster, name=topic)
    write(cluster, topic_partition, b"c", b"d", b"e")
    with pytest.raises(StreamingQueryException, match="deleted and made again"):
        streams.run(subscribe=topic)
    streams.run(subscribe=topic, failOnDataLoss="false")
    assert streams.rows() == [b"a", b"b", b"c", b"d", b"e"]


def test_spark_refuses_real_time_mode(
    spark: Any, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    """As for every Python source. If Spark accepts it one day, the documents must say so."""
    reader = spark.readStream.format("ottla").option("kafka.bootstrap.servers", bootstrap)
    writer = reader.option("subscribe", topic).load().writeStream.format("console")
    writer = writer.option("checkpointLocation", str(tmp_path)).outputMode("update")
    if "realTime" not in inspect.signature(writer.trigger).parameters:
        pytest.skip("this Spark has no real-time mode in Python")
    query = writer.trigger(realTime="5 seconds").start()
    with pytest.raises(StreamingQueryException, match="INPUT_STREAM_NOT_SUPPORTED"):
        query.awaitTermination()
