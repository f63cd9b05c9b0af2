import datetime as dt
from typing import Any

import pytest
from pyspark.errors import PySparkException
from tests.client.topics import create_topic
from tests.pyspark_ottla.sink.written import records, values

from ottla.client.wire.cluster import Cluster
from ottla.client.wire.transactions import list_open_ids
from pyspark_ottla.sink.identity import pattern_of

MOMENT = dt.datetime(2026, 1, 2, 3, 4, 5)


@pytest.fixture
def topic(cluster: Cluster) -> str:
    return create_topic(cluster, partitions=3)


def save(frame: Any, bootstrap: str, **options: object) -> None:
    frame.write.format("ottla").option("kafka.bootstrap.servers", bootstrap).options(
        **options
    ).mode("append").save()


def test_what_is_written_is_what_is_read(
    spark: Any, bootstrap: str, cluster: Cluster, topic: str
) -> None:
    header = [("name", bytearray(b"x")), ("empty", None)]
    rows = [
        (topic, 2, b"k", b"v", MOMENT, header),
        (topic, 0, None, b"w", MOMENT, None),
        (topic, 0, b"", None, MOMENT, []),
    ]
    schema = (
        "topic string, partition int, key binary, value binary, timestamp timestamp,"
        " headers array<struct<key: string, value: binary>>"
    )
    save(spark.createDataFrame(rows, schema).coalesce(1), bootstrap, compression="zstd")
    moment_ms = int(MOMENT.timestamp() * 1000)
    found = {
        partition: [
            (record.key, record.value, record.timestamp, record.headers) for record in batch
        ]
        for partition, batch in records(cluster, topic).items()
    }
    assert found == {
        0: [(None, b"w", moment_ms, ()), (b"", None, moment_ms, ())],
        1: [],
        2: [(b"k", b"v", moment_ms, (("name", b"x"), ("empty", None)))],
    }


def test_strings_with_keys_over_several_tasks(
    spark: Any, bootstrap: str, cluster: Cluster, topic: str
) -> None:
    frame = spark.range(0, 100, 1, 2).selectExpr("string(id % 10) key", "string(id) value")
    save(frame, bootstrap, topic=topic)
    found = records(cluster, topic)
    assert values(cluster, topic) == sorted(map(str, range(100)))
    partitions = [{record.key for record in batch} for batch in found.values()]
    assert sum(map(len, partitions)) == 10  # No key is in two partitions.


def test_a_write_with_a_number_counts_once(
    spark: Any, bootstrap: str, cluster: Cluster, topic: str
) -> None:
    options = {"topic": topic, "delivery": "exactly_once", "sinkId": topic}
    for batch_id in (0, 0, 1):
        frame = spark.createDataFrame([(f"batch {batch_id}",)], "value string")
        save(frame, bootstrap, batchId=batch_id, **options)
    assert values(cluster, topic) == ["batch 0", "batch 1"]


def test_a_write_that_fails_leaves_nothing_behind_the_next(
    spark: Any, bootstrap: str, cluster: Cluster, topic: str
) -> None:
    frame = spark.range(0, 4, 1, 2)
    options = {"topic": topic, "delivery": "exactly_once", "sinkId": topic, "batchId": 0}
    with pytest.raises(PySparkException, match=r"partitions 0 to 2, a row asks for 99"):
        save(frame.selectExpr("if(id = 3, 99, 0) partition", "'bad' value"), bootstrap, **options)
    save(frame.selectExpr("'good' value"), bootstrap, **options)
    assert list_open_ids(cluster, pattern_of(topic)) == []
    assert values(cluster, topic) == ["good"] * 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tpoic": "a"}, "did you mean topic"),
        ({"topic": "a", "delivery": "exactly_once"}, "sinkId is missing"),
    ],
)
def test_bad_options_are_said_before_anything_is_written(
    spark: Any, bootstrap: str, options: dict[str, str], message: str
) -> None:
    frame = spark.createDataFrame([("a",)], "value string")
    with pytest.raises(PySparkException, match=message):
        save(frame, bootstrap, **options)


def test_a_topic_is_not_overwritten(spark: Any, bootstrap: str) -> None:
    writer = spark.createDataFrame([("a",)], "value string").write.format("ottla")
    writer = writer.options(**{"kafka.bootstrap.servers": bootstrap, "topic": "a"})
    with pytest.raises(PySparkException, match="mode append"):
        writer.mode("overwrite").save()
