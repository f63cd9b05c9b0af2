import functools
import json
from typing import Any

import pytest
from pyspark.errors import PySparkException
from tests.client.topics import create_topic
from tests.pyspark_ottla.rows import HOUR_MS, write

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.records.builder import Record
from pyspark_ottla.spark_api import HAS_FILTERS

RECORDS = 1_000


@pytest.fixture(scope="module")
def topic(bootstrap: str) -> str:
    """Two partitions of RECORDS each, one batch in each codec, an hour between batches."""
    with Cluster(bootstrap) as cluster:
        topic = create_topic(cluster, partitions=2)
        for partition in range(2):
            for codec in range(5):
                records = [
                    Record(
                        timestamp=codec * HOUR_MS + index,
                        key=None if index % 10 == 0 else b"k%d" % (index % 7),
                        value=None if index == 5 else b"%d" % index,
                        headers=(("codec", b"%d" % codec),) if codec else (),
                    )
                    for index in range(RECORDS // 5)
                ]
                topic_partition = TopicPartition(topic, partition)
                write(cluster, topic_partition, *records, compression=codec)
    return topic


@pytest.fixture
def read(spark: Any, bootstrap: str, topic: str) -> Any:
    def read_with(schema: str | None = None, **options: str) -> Any:
        reader = spark.read.format("ottla").option("kafka.bootstrap.servers", bootstrap)
        if not {"subscribePattern", "assign", "subscribe"} & set(options):
            reader = reader.option("subscribe", topic)
        if schema:
            reader = reader.schema(schema)
        return reader.options(**options).load()

    return read_with


def test_the_columns_are_those_of_sparks_kafka_source(read: Any) -> None:
    plain = (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int"
    )
    assert read().schema.simpleString() == plain + ">"
    with_headers = read(includeHeaders="true").schema.simpleString()
    assert with_headers == plain + ",headers:array<struct<key:string,value:binary>>>"


def test_rows(read: Any, topic: str) -> None:
    rows = read(includeHeaders="true").where("partition = 1").orderBy("offset").collect()
    assert len(rows) == RECORDS
    assert [row.offset for row in rows] == list(range(RECORDS))
    row = rows[206]
    assert (row.key, row.value, row.topic, row.timestampType) == (b"k6", b"6", topic, 0)
    assert row.timestamp.timestamp() * 1000 == HOUR_MS + 6
    assert [tuple(header) for header in row.headers] == [("codec", b"1")]
    assert rows[0].key is None
    assert rows[5].value is None
    assert rows[5].headers is None


def test_sums_over_every_codec(read: Any) -> None:
    counted = read().groupBy("key").count().collect()
    assert sum(row["count"] for row in counted) == 2 * RECORDS
    assert [row["count"] for row in counted if row.key is None] == [2 * RECORDS // 10]


def test_a_schema_of_some_columns_in_any_order(read: Any, topic: str) -> None:
    df = read("offset bigint, topic string")
    assert df.orderBy("offset").first().asDict() == {"offset": 0, "topic": topic}
    assert df.count() == 2 * RECORDS


FILTERS = {
    "partition = 0 and offset >= 10 and offset < 25": 15,
    "offset in (3, 4, 999)": 6,
    "topic like 'no%'": 0,
    "timestamp > timestamp_millis(3600000 + 5) and partition = 1": 594 + 200,
    "timestamp < timestamp_millis(3600000)": 2 * 200,
    "timestamp = timestamp_millis(3600000 + 5)": 2,
    "offset < 10 and value = '7'": 2,
}


@pytest.mark.parametrize("switch", ["true", "false"])
def test_filters_give_the_same_rows_pushed_down_or_not(spark: Any, read: Any, switch: str) -> None:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", switch)
    try:
        parts = [
            read().where(condition).selectExpr(f"{index} as part")
            for index, condition in enumerate(FILTERS)
        ]
        found = {row.part: row["count"] for row in union(parts).groupBy("part").count().collect()}
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    assert [found.get(index, 0) for index in range(len(FILTERS))] == list(FILTERS.values())


def union(frames: list[Any]) -> Any:
    """One query for all: planning each separately takes longer than reading."""
    return functools.reduce(lambda left, right: left.union(right), frames)


@pytest.mark.skipif(not HAS_FILTERS, reason="Spark 4.0 pushes no filters")
def test_a_filter_that_is_answered_by_the_source_leaves_the_plan(read: Any) -> None:
    plan = read().where("partition = 0 and offset < 5")._jdf.queryExecution().executedPlan()
    assert "Filter (" not in plan.toString()
    plan = read().where("partition = 0 and value = 'x'")._jdf.queryExecution().executedPlan()
    assert "Filter (" in plan.toString()


def test_offsets_times_and_split_tasks(read: Any, topic: str) -> None:
    start = json.dumps({topic: {"0": 990, "1": -2}})
    end = json.dumps({topic: {"0": -1, "1": 4}})
    assert read(startingOffsets=start, endingOffsets=end).count() == 14
    assert read(startingTimestamp=str(4 * HOUR_MS), endingTimestamp=str(9 * HOUR_MS)).count() == 400
    split = read(minPartitions="6")
    assert split.rdd.getNumPartitions() == 6
    assert split.count() == 2 * RECORDS


def test_typed_values(cluster: Cluster, read: Any) -> None:
    topic = create_topic(cluster)
    values = [b'{"item": "lamp", "price": 30}', None, b'{"item": "desk", "at": "2024-05-01"}']
    write(cluster, TopicPartition(topic, 0), *values)
    as_json = read(
        subscribe=topic, valueFormat="json", valueSchema="item string, price int, at date"
    ).selectExpr("offset", "value.item", "value.price", "cast(value.at as string)")
    rows = sorted(map(tuple, as_json.collect()))
    expected = [(0, "lamp", 30, None), (1, None, None, None), (2, "desk", None, "2024-05-01")]
    assert rows == expected
    as_text = read("value string", subscribe=topic, valueFormat="string").collect()
    assert [row.value and row.value.encode() for row in as_text] == values
    avro = json.dumps({"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}]})
    numbers = create_topic(cluster)
    write(cluster, TopicPartition(numbers, 0), *(bytes([2 * number]) for number in range(10)))
    as_avro = read(subscribe=numbers, valueFormat="avro", valueSchema=avro)
    assert as_avro.selectExpr("sum(value.n) as total").first().total == 45


def test_other_subscriptions(cluster: Cluster, read: Any, topic: str) -> None:
    empty = create_topic(cluster, name=f"{topic}-empty")
    assert read(assign=json.dumps({topic: [1]})).count() == RECORDS
    assert read(subscribePattern=f"{topic}.*").count() == 2 * RECORDS
    assert read(subscribe=empty).count() == 0
    assert read(subscribe=f"{topic}, {empty}").count() == 2 * RECORDS


def test_sql(spark: Any, bootstrap: str, topic: str) -> None:
    spark.sql(
        "create or replace temporary view orders using ottla options ("
        f"`kafka.bootstrap.servers` '{bootstrap}', subscribe '{topic}')"
    )
    (row,) = spark.sql("select count(*), max(offset) from orders where partition = 0").collect()
    assert tuple(row) == (RECORDS, RECORDS - 1)


def test_a_table_is_refused_because_spark_forgets_its_options(
    spark: Any, bootstrap: str, topic: str
) -> None:
    with pytest.raises(PySparkException) as raised:
        spark.sql(
            "create table numbers using ottla options ("
            f"`kafka.bootstrap.servers` '{bootstrap}', subscribe '{topic}')"
        )
    assert "CREATE TEMPORARY VIEW" in str(raised.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingOffset": "earliest"}, "did you mean startingOffsets?"),
        ({"maxOffsetsPerTrigger": "5"}, "maxOffsetsPerTrigger is for streaming queries"),
        ({"subscribe": "nowhere"}, "there is no topic or partition nowhere in the cluster"),
    ],
)
def test_what_is_wrong_is_said(read: Any, options: dict[str, str], message: str) -> None:
    with pytest.raises(PySparkException) as raised:
        read(**options).count()
    assert message in str(raised.value)


def test_a_schema_with_another_column_is_refused(read: Any) -> None:
    with pytest.raises(PySparkException) as raised:
        read("valeu binary").count()
    assert "did you mean value?" in str(raised.value)


def test_times_are_instants_whatever_the_session_says(spark: Any, read: Any) -> None:
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        (row,) = (
            read()
            .where("offset = 0 and partition = 0")
            .selectExpr("cast(timestamp as string) as text")
            .collect()
        )
        assert row.text == "1970-01-01 09:00:00"
        later = read().where("timestamp >= timestamp '1970-01-01 13:00:00'").count()
        assert later == 400
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
