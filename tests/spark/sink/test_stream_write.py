from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from tests.client.topics import create_topic
from tests.pyspark_ottla.sink.written import values

from ottla.client.wire.cluster import Cluster


@pytest.fixture
def topic(cluster: Cluster) -> str:
    return create_topic(cluster, partitions=2)


class Input:
    """Text files, each of which becomes a batch."""

    def __init__(self, spark: Any, bootstrap: str, directory: Path) -> None:
        self._spark = spark
        self._bootstrap = bootstrap
        self._directory = directory / "input"
        self._directory.mkdir()
        self._files = 0

    def add(self, *lines: str) -> None:
        path = self._directory / f"{self._files:03}.txt"
        path.write_text("".join(f"{line}\n" for line in lines))
        self._files += 1

    def frame(self) -> Any:
        reader = self._spark.readStream.schema("value string").option("maxFilesPerTrigger", 1)
        return reader.text(str(self._directory))

    def write(self, checkpoint: Path, **options: str) -> None:
        """Processes all input until the query ends."""
        writer = self.frame().writeStream.format("ottla")
        writer = writer.option("kafka.bootstrap.servers", self._bootstrap).options(**options)
        writer = writer.option("checkpointLocation", str(checkpoint))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()


@pytest.fixture
def lines(spark: Any, bootstrap: str, tmp_path: Path) -> Input:
    return Input(spark, bootstrap, tmp_path)


def test_a_stream_that_restarts_writes_each_row_once(
    lines: Input, tmp_path: Path, cluster: Cluster, topic: str
) -> None:
    checkpoint = tmp_path / "checkpoint"
    lines.add("a", "b")
    lines.add("c")
    lines.write(checkpoint, topic=topic, sinkId=topic)
    assert values(cluster, topic) == ["a", "b", "c"]
    last_commit = max((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    for path in (last_commit, last_commit.with_name(f".{last_commit.name}.crc")):
        path.unlink(missing_ok=True)  # As if Spark had died before the commit.
    lines.add("d")
    lines.write(checkpoint, topic=topic, sinkId=topic)
    assert values(cluster, topic) == ["a", "b", "c", "d"]


def test_a_new_checkpoint_needs_a_new_sink(
    lines: Input, tmp_path: Path, cluster: Cluster, topic: str
) -> None:
    lines.add("a")
    lines.write(tmp_path / "first", topic=topic, sinkId=topic)
    with pytest.raises(StreamingQueryException, match="new checkpoint needs a new sinkId"):
        lines.write(tmp_path / "second", topic=topic, sinkId=topic)
    assert values(cluster, topic) == ["a"]


def test_at_least_once_without_a_name(
    lines: Input, tmp_path: Path, cluster: Cluster, topic: str
) -> None:
    lines.add("a", "b")
    lines.write(tmp_path / "checkpoint", topic=topic, delivery="at_least_once", compression="lz4")
    assert values(cluster, topic) == ["a", "b"]


def test_exactly_once_with_the_numbers_of_foreach_batch(
    lines: Input, bootstrap: str, tmp_path: Path, cluster: Cluster, topic: str
) -> None:
    options = {
        "kafka.bootstrap.servers": bootstrap,
        "topic": topic,
        "delivery": "exactly_once",
        "sinkId": topic,
    }

    def write_twice(frame: Any, batch_id: int) -> None:
        for _ in range(2):
            writer = frame.write.format("ottla").options(**options).option("batchId", batch_id)
            writer.mode("append").save()

    lines.add("a")
    lines.add("b")
    writer = lines.frame().writeStream.foreachBatch(write_twice)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    assert values(cluster, topic) == ["a", "b"]
