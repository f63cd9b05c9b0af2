import datetime as dt
import logging
import pickle
import subprocess
import sys
from typing import Any

import pytest
from pyspark.sql import datasource as spark
from pyspark.sql.types import StringType, StructField, StructType
from tests.client.topics import create_topic
from tests.fork_server import REPOSITORY
from tests.pyspark_ottla.rows import HOUR_MS, delete_records, ranges, read_all, schema, write

from ottla.client.wire.cluster import Cluster
from ottla.client.wire.producing import (
    add_partitions,
    end_transaction,
    init_transactions,
    produce,
)
from ottla.protocol.topics import TopicPartition
from ottla.records.builder import Record, build_batch
from pyspark_ottla.batch_reader import OttlaReader
from pyspark_ottla.columns import COLUMNS
from pyspark_ottla.data_loss import DataLoss
from pyspark_ottla.options import OptionError
from pyspark_ottla.positions import NoRecordSoLate
from pyspark_ottla.source_options import Use, parse_source_options
from pyspark_ottla.spark_api import HAS_FILTERS
from pyspark_ottla.subscription import UnknownPartition
from pyspark_ottla.value_formats import BadValue

needs_filters = pytest.mark.skipif(not HAS_FILTERS, reason="Spark 4.0 pushes no filters")


@pytest.fixture
def open_reader(bootstrap: str) -> Any:
    def open_with(topic: str = "", columns: StructType | None = None, **options: str) -> Any:
        given = {"kafka.bootstrap.servers": bootstrap} | options
        if topic:
            given["subscribe"] = topic
        return OttlaReader(parse_source_options(given, Use.BATCH), columns or schema("value"))

    return open_with


def values(reader: OttlaReader) -> list[Any]:
    return [row["value"] for row in read_all(reader, reader.partitions())]


def test_every_column(cluster: Cluster, topic: str, open_reader: Any) -> None:
    topic_partition = TopicPartition(topic, 0)
    write(
        cluster,
        topic_partition,
        Record(-1, 5, b"k", b"v", (("h", b"1"), ("h", None))),
        Record(-1, 6),
    )
    write(cluster, topic_partition, Record(-1, 7, b"", b""), compression=3)
    reader = open_reader(topic, COLUMNS, includeHeaders="true")
    time = dt.datetime.fromtimestamp(0, dt.UTC)
    same = {"topic": topic, "partition": 0, "timestampType": 0}
    assert read_all(reader, reader.partitions()) == [
        {
            **same,
            "key": b"k",
            "value": b"v",
            "offset": 0,
            "timestamp": time + dt.timedelta(milliseconds=5),
            "headers": [{"key": "h", "value": b"1"}, {"key": "h", "value": None}],
        },
        {
            **same,
            "key": None,
            "value": None,
            "offset": 1,
            "timestamp": time + dt.timedelta(milliseconds=6),
            "headers": None,
        },
        {
            **same,
            "key": b"",
            "value": b"",
            "offset": 2,
            "timestamp": time + dt.timedelta(milliseconds=7),
            "headers": None,
        },
    ]


READ_BY_A_TASK = """
import sys
from pyspark_ottla.columns import COLUMNS
from pyspark_ottla.offset_ranges import OffsetRange
from pyspark_ottla.range_reader import read_range
from pyspark_ottla.source_options import parse_source_options

options = parse_source_options({"kafka.bootstrap.servers": sys.argv[1], "subscribe": sys.argv[2]})
rows = sum(map(len, read_range(options, COLUMNS, OffsetRange(sys.argv[2], 0, 0, 2, None))))
print(rows, "pandas" in sys.modules)
"""


def test_a_task_does_without_pandas_which_is_large(
    cluster: Cluster, topic: str, bootstrap: str
) -> None:
    write(cluster, TopicPartition(topic, 0), Record(-1, 5, b"k", b"v", (("h", b"1"),)), b"w")
    command = [sys.executable, "-c", READ_BY_A_TASK, bootstrap, topic]
    environment = {"PYTHONPATH": str(REPOSITORY / "src")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "2 False\n", done.stderr


def test_columns_that_no_record_has_are_read_all_the_same(
    cluster: Cluster, topic: str, open_reader: Any
) -> None:
    write(cluster, TopicPartition(topic, 0), b"a", b"b")
    reader = open_reader(topic, schema("partition", "topic"))
    rows = read_all(reader, reader.partitions())
    assert rows == [{"partition": 0, "topic": topic}] * 2


def test_many_fetches(cluster: Cluster, topic: str, open_reader: Any) -> None:
    for number in range(30):
        write(cluster, TopicPartition(topic, 0), b"%d" % number, b"x" * 5_000)
    reader = open_reader(topic, **{"kafka.max.partition.fetch.bytes": "12000"})
    assert values(reader)[0::2] == [b"%d" % number for number in range(30)]


def test_a_reader_goes_to_tasks_as_a_pickle(cluster: Cluster, topic: str, open_reader: Any) -> None:
    write(cluster, TopicPartition(topic, 0), b"a")
    reader = open_reader(topic)
    partitions = pickle.loads(pickle.dumps(reader.partitions()))
    assert read_all(pickle.loads(pickle.dumps(reader)), partitions) == [{"value": b"a"}]


def test_offsets_and_partitions(cluster: Cluster, open_reader: Any) -> None:
    topic = create_topic(cluster, partitions=3)
    for partition in range(3):
        write(cluster, TopicPartition(topic, partition), *(b"%d" % n for n in range(10)))
    start = f'{{"{topic}": {{"0": 3, "1": -2, "2": 10}}}}'
    end = f'{{"{topic}": {{"0": 5, "1": -1, "2": -1}}}}'
    reader = open_reader(topic, startingOffsets=start, endingOffsets=end)
    assert ranges(reader.partitions()) == [(f"{topic}-0", 3, 5), (f"{topic}-1", 0, 10)]
    split = open_reader(assign=f'{{"{topic}": [1]}}', minPartitions="3")
    assert [item[1:] for item in ranges(split.partitions())] == [(0, 3), (3, 6), (6, 10)]
    assert values(split) == [b"%d" % n for n in range(10)]


def test_offsets_have_to_name_each_partition(cluster: Cluster, open_reader: Any) -> None:
    topic = create_topic(cluster, partitions=2)
    with pytest.raises(OptionError, match=f"says nothing of {topic}-1"):
        open_reader(topic, startingOffsets=f'{{"{topic}": {{"0": 0}}}}').partitions()
    with pytest.raises(OptionError, match=f"has {topic}-2, which is not read"):
        open_reader(topic, endingOffsets=f'{{"{topic}": {{"2": 0}}}}').partitions()


def test_topics_by_a_pattern(cluster: Cluster, topic: str, open_reader: Any) -> None:
    other = create_topic(cluster, name=f"{topic}-other")
    create_topic(cluster, name=f"not-{topic}")
    write(cluster, TopicPartition(topic, 0), b"a")
    write(cluster, TopicPartition(other, 0), b"b")
    assert values(open_reader(subscribePattern=f"{topic}.*")) == [b"a", b"b"]
    assert open_reader(subscribePattern="nothing-is-called-this").partitions() == []


def test_what_does_not_exist_is_said(topic: str, open_reader: Any) -> None:
    with pytest.raises(UnknownPartition, match="no topic or partition nowhere in"):
        open_reader(f"{topic},nowhere").partitions()
    with pytest.raises(UnknownPartition, match=f"no topic or partition {topic}-4 in"):
        open_reader(assign=f'{{"{topic}": [0, 4]}}').partitions()


def test_times(cluster: Cluster, open_reader: Any) -> None:
    topic = create_topic(cluster, partitions=2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    for hour in range(5):
        write(cluster, first, Record(timestamp=hour * HOUR_MS, value=b"%d" % hour))
    write(cluster, second, Record(timestamp=0, value=b"early"))
    late = {"startingOffsetsByTimestampStrategy": "latest"}
    third = str(3 * HOUR_MS)
    assert values(open_reader(topic, startingTimestamp=third, **late)) == [b"3", b"4"]
    assert values(open_reader(topic, endingTimestamp="1")) == [b"0", b"early"]
    with pytest.raises(NoRecordSoLate, match=f"no record is so late in {topic}-1;"):
        open_reader(topic, startingTimestamp=third).partitions()
    by_partition = f'{{"{topic}": {{"0": {HOUR_MS}, "1": 0}}}}'
    assert ranges(
        open_reader(
            topic, startingOffsetsByTimestamp=by_partition, endingTimestamp=third
        ).partitions()
    ) == [(f"{topic}-0", 1, 3), (f"{topic}-1", 0, 1)]


@needs_filters
def test_filters_make_the_read_smaller(cluster: Cluster, open_reader: Any) -> None:
    topic = create_topic(cluster, partitions=3)
    for partition in range(3):
        topic_partition = TopicPartition(topic, partition)
        for hour in range(4):
            write(cluster, topic_partition, Record(timestamp=hour * HOUR_MS, value=b"%d" % hour))
    write(cluster, TopicPartition(topic, 2), Record(timestamp=0, value=b"late, but of old"))
    hour_two = dt.datetime.fromtimestamp(2 * HOUR_MS / 1000, dt.UTC)
    reader = open_reader(topic)
    later = spark.GreaterThanOrEqual(("timestamp",), hour_two)
    assert reader.push([later, spark.GreaterThanOrEqual(("partition",), 1)]) == [later]
    assert ranges(reader.partitions()) == [(f"{topic}-1", 2, 4), (f"{topic}-2", 2, 5)]
    reader = open_reader(topic)
    assert reader.push([spark.LessThan(("offset",), 1), spark.EqualTo(("partition",), 0)]) == []
    assert ranges(reader.partitions()) == [(f"{topic}-0", 0, 1)]
    reader = open_reader(topic)
    far = dt.datetime(2100, 1, 1, tzinfo=dt.UTC)
    reader.push([spark.GreaterThanOrEqual(("timestamp",), far)])
    assert reader.partitions() == []


@needs_filters
def test_pyspark_does_not_take_it_for_a_reader_that_insists_on_filters(
    topic: str, open_reader: Any
) -> None:
    reader = open_reader(topic)
    assert reader.pushFilters.__func__ is spark.DataSourceReader.pushFilters
    item = spark.EqualTo(("value",), b"x")
    assert reader.pushFilters([item]) == [item]


def test_committed_records(cluster: Cluster, topic: str, open_reader: Any) -> None:
    topic_partition = TopicPartition(topic, 0)
    for value, commit in ((b"kept", True), (b"gone", False), (b"open", None)):
        producer = init_transactions(cluster, f"{topic}-{value.decode()}", 60_000).producer
        add_partitions(cluster, f"{topic}-{value.decode()}", producer, [topic_partition])
        batch = build_batch(
            [Record(timestamp=1, value=value)],
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=0,
            transactional=True,
        )
        produce(cluster, {topic_partition: batch}, f"{topic}-{value.decode()}")
        if commit is not None:
            end_transaction(cluster, f"{topic}-{value.decode()}", producer, commit=commit)
    committed = open_reader(topic, **{"kafka.isolation.level": "read_committed"})
    while ranges(committed.partitions()) != [(f"{topic}-0", 0, 4)]:
        pass  # The marker is written a moment after the response.
    assert values(committed) == [b"kept"]
    assert values(open_reader(topic)) == [b"kept", b"gone", b"open"]


def test_records_that_are_gone_before_they_are_planned(
    cluster: Cluster, topic: str, open_reader: Any, caplog: pytest.LogCaptureFixture
) -> None:
    topic_partition = TopicPartition(topic, 0)
    write(cluster, topic_partition, *(b"%d" % number for number in range(10)))
    delete_records(cluster, topic_partition, 4)
    start = {"startingOffsets": f'{{"{topic}": {{"0": 1}}}}'}
    end = {"endingOffsets": f'{{"{topic}": {{"0": 12}}}}'}
    with pytest.raises(DataLoss, match=f"{topic}-0: records 1 to 3 are gone"):
        open_reader(topic, **start).partitions()
    with pytest.raises(DataLoss, match=f"{topic}-0: records 10 to 11 are not there"):
        open_reader(topic, **end).partitions()
    reader = open_reader(topic, failOnDataLoss="false", **start, **end)
    with caplog.at_level(logging.WARNING):
        assert ranges(reader.partitions()) == [(f"{topic}-0", 4, 10)]
    assert "records 1 to 3 are gone" in caplog.text
    assert "records 10 to 11 are not there" in caplog.text


def test_records_that_are_gone_before_they_are_read(
    cluster: Cluster, topic: str, open_reader: Any, caplog: pytest.LogCaptureFixture
) -> None:
    topic_partition = TopicPartition(topic, 0)
    for number in range(10):
        write(cluster, topic_partition, b"%d" % number)
    strict, lenient = open_reader(topic), open_reader(topic, failOnDataLoss="false")
    partitions = strict.partitions()
    delete_records(cluster, topic_partition, 7)
    with pytest.raises(DataLoss, match="records 0 to 6 are gone: the partition begins at 7 now"):
        read_all(strict, partitions)
    with caplog.at_level(logging.WARNING):
        rows = read_all(lenient, partitions)
    assert [row["value"] for row in rows] == [b"7", b"8", b"9"]
    assert "records 0 to 6 are gone" in caplog.text


def test_a_partition_that_ends_before_the_planned_end(
    cluster: Cluster, topic: str, open_reader: Any, caplog: pytest.LogCaptureFixture
) -> None:
    write(cluster, TopicPartition(topic, 0), b"a", b"b")
    impatient = {"kafka.default.api.timeout.ms": "1"}
    strict = open_reader(topic, **impatient)
    (planned,) = strict.partitions()
    longer = type(planned)(topic, 0, 0, 9, planned.topic_id)
    beyond = type(planned)(topic, 0, 5, 9, planned.topic_id)
    with pytest.raises(DataLoss, match="records 2 to 8 are gone: the partition ends at 2"):
        read_all(strict, [longer])
    with pytest.raises(DataLoss, match="records 5 to 8 are gone: the partition ends at 2 now"):
        read_all(strict, [beyond])
    lenient = open_reader(topic, failOnDataLoss="false", **impatient)
    with caplog.at_level(logging.WARNING):
        assert len(read_all(lenient, [longer])) == 2
    assert "records 2 to 8 are gone" in caplog.text


def test_a_topic_that_was_made_again_before_it_is_read(
    cluster: Cluster, topic: str, open_reader: Any
) -> None:
    write(cluster, TopicPartition(topic, 0), b"a")
    (planned,) = open_reader(topic).partitions()
    other = type(planned)(topic, 0, 0, 1, "11111111-1111-1111-1111-111111111111")
    with pytest.raises(DataLoss, match="deleted and made again"):
        read_all(open_reader(topic), [other])
    assert read_all(open_reader(topic, failOnDataLoss="false"), [other]) == []


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (StructType([StructField("valeu", StringType())]), "did you mean value?"),
        (StructType([StructField("x", StringType())]), "there are key, value"),
        (StructType([StructField("offset", StringType())]), "offset is bigint and not string"),
        (schema("key", "key"), "names a column twice"),
    ],
)
def test_a_schema_that_is_not_of_the_columns_is_refused(
    open_reader: Any, columns: StructType, message: str
) -> None:
    with pytest.raises(OptionError, match=message.replace("?", r"\?")):
        open_reader("t", columns)


def test_bad_values_stop_the_read_or_become_null(
    cluster: Cluster, topic: str, open_reader: Any
) -> None:
    write(cluster, TopicPartition(topic, 0), b"text", b"\xff", None)
    columns = StructType([StructField("value", StringType())])
    with pytest.raises(BadValue, match=f"{topic}-0: the value at offset 1 is not string"):
        values(open_reader(topic, columns, valueFormat="string"))
    lenient = open_reader(topic, columns, valueFormat="string", valueMode="permissive")
    assert values(lenient) == ["text", None, None]
