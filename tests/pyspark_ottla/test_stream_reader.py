import json
import logging
import pickle
from typing import Any

import pytest
from tests.client.topics import create_topic, delete_topic
from tests.pyspark_ottla.rows import (
    add_partitions,
    delete_records,
    ranges,
    read_all,
    schema,
    write,
)

from ottla.client.wire.cluster import Cluster
from ottla.client.wire.groups import committed_offsets
from ottla.protocol.topics import TopicPartition
from pyspark_ottla import stream_reader
from pyspark_ottla.data_loss import DataLoss
from pyspark_ottla.source_options import Use, parse_source_options
from pyspark_ottla.spark_api import ReadAllAvailable, ReadMaxRows
from pyspark_ottla.stream_offsets import StreamOffset, parse_stream_offset
from pyspark_ottla.stream_reader import OttlaStreamReader
from pyspark_ottla.subscription import UnknownPartition

ALL = ReadAllAvailable()


@pytest.fixture
def open_reader(bootstrap: str) -> Any:
    readers = []

    def open_with(topic: str = "", **options: str) -> OttlaStreamReader:
        given = {"kafka.bootstrap.servers": bootstrap, "startingOffsets": "earliest"} | options
        if topic:
            given["subscribe"] = topic
        options_parsed = parse_source_options(given, Use.STREAM)
        readers.append(OttlaStreamReader(options_parsed, schema("value")))
        return readers[-1]

    yield open_with
    for reader in readers:
        reader.stop()


def offsets(written: dict[str, Any]) -> dict[str, int]:
    return {
        str(topic_partition): offset
        for topic_partition, offset in parse_stream_offset(written).offsets.items()
    }


def test_a_stream_goes_on_from_one_offset_to_the_next(
    cluster: Cluster, topic: str, open_reader: Any
) -> None:
    reader = open_reader(topic)
    start = reader.initialOffset()
    write(cluster, TopicPartition(topic, 0), b"a", b"b")
    middle = reader.latestOffset(start, ALL)
    assert reader.latestOffset(middle, ALL) == middle
    write(cluster, TopicPartition(topic, 0), b"c")
    end = reader.latestOffset(middle, ALL)
    assert [offsets(item)[f"{topic}-0"] for item in (start, middle, end)] == [0, 2, 3]
    assert read_all(reader, reader.partitions(start, middle)) == [{"value": b"a"}, {"value": b"b"}]
    assert read_all(reader, reader.partitions(middle, end)) == [{"value": b"c"}]
    assert reader.reportLatestOffset() == end


def test_a_spark_that_does_not_say_where_the_last_batch_ended(
    cluster: Cluster, topic: str, open_reader: Any
) -> None:
    """Before 4.2. A query that is resumed plans an empty range first."""
    write(cluster, TopicPartition(topic, 0), b"a", b"b")
    reader = open_reader(topic)
    first = reader.latestOffset()
    assert read_all(reader, reader.partitions(reader.initialOffset(), first)) == [
        {"value": b"a"},
        {"value": b"b"},
    ]
    assert reader.latestOffset() == first
    resumed = open_reader(topic)
    assert resumed.partitions(first, first) == []
    assert resumed.latestOffset() == first
    write(cluster, TopicPartition(topic, 0), b"c")
    assert offsets(resumed.latestOffset()) == {f"{topic}-0": 3}


def test_a_spark_that_asks_once_and_says_nothing_before(
    cluster: Cluster, topic: str, open_reader: Any
) -> None:
    """Before 4.2, with Trigger.AvailableNow: the answer is where each run ends."""
    topic_partition = TopicPartition(topic, 0)
    reached = StreamOffset({topic_partition: 0}, {}).as_json()
    for value in (b"a", b"b", b"c"):
        write(cluster, topic_partition, value)
        run = open_reader(topic, startingOffsets="latest")
        end = run.latestOffset()
        assert read_all(run, run.partitions(reached, end)) == [{"value": value}]
        reached = end
    assert open_reader(topic, startingOffsets="latest").latestOffset() == reached


def test_a_spark_that_asks_once_resumes_a_query_that_could_not_start_any_more(
    cluster: Cluster, topic: str, open_reader: Any
) -> None:
    starts = json.dumps({topic: {"0": 0}})
    reached = open_reader(topic, startingOffsets=starts).latestOffset()
    add_partitions(cluster, topic, 2)
    write(cluster, TopicPartition(topic, 1), b"a")
    resumed = open_reader(topic, startingOffsets=starts)
    partitions = resumed.partitions(reached, resumed.latestOffset())
    assert read_all(resumed, partitions) == [{"value": b"a"}]


def test_the_reader_of_a_task_is_a_copy(cluster: Cluster, topic: str, open_reader: Any) -> None:
    reader = open_reader(topic)
    start = reader.initialOffset()
    write(cluster, TopicPartition(topic, 0), b"a")
    partitions = reader.partitions(start, reader.latestOffset(start, ALL))
    copy = pickle.loads(pickle.dumps(reader))
    assert read_all(copy, pickle.loads(pickle.dumps(partitions))) == [{"value": b"a"}]


def test_few_records_of_several_partitions_are_one_task(
    cluster: Cluster, open_reader: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = create_topic(cluster, partitions=3)
    for partition in range(3):
        write(cluster, TopicPartition(topic, partition), b"a%d" % partition, b"b%d" % partition)
    reader = open_reader(topic)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    (together,) = reader.partitions(start, end)
    read = [row["value"] for row in read_all(reader, [pickle.loads(pickle.dumps(together))])]
    assert read == [b"a0", b"b0", b"a1", b"b1", b"a2", b"b2"]
    assert len(open_reader(topic, minPartitions="1").partitions(start, end)) == 3
    monkeypatch.setattr(stream_reader, "_OFFSETS_TOGETHER_MAX", 3)
    assert len(reader.partitions(start, end)) == 3


def test_where_a_stream_starts_does_not_move_while_it_runs(
    cluster: Cluster, topic: str, open_reader: Any
) -> None:
    reader = open_reader(topic, startingOffsets="latest")
    start = reader.initialOffset()
    write(cluster, TopicPartition(topic, 0), b"a")
    assert reader.initialOffset() == start


def test_a_first_batch_that_is_repeated_starts_where_it_did(
    cluster: Cluster, topic: str, open_reader: Any
) -> None:
    """Spark stores the end of a batch before running it, and no start for the first one."""
    topic_partition = TopicPartition(topic, 0)
    write(cluster, topic_partition, b"before")
    first_run = open_reader(topic, startingOffsets="latest")
    start = first_run.initialOffset()
    write(cluster, topic_partition, b"a", b"b")
    end = first_run.latestOffset(start, ALL)
    write(cluster, topic_partition, b"c")
    second_run = open_reader(topic, startingOffsets="latest")
    partitions = second_run.partitions(second_run.initialOffset(), end)
    assert read_all(second_run, partitions) == [{"value": b"a"}, {"value": b"b"}]
    later = second_run.latestOffset(end, ALL)
    assert read_all(second_run, second_run.partitions(end, later)) == [{"value": b"c"}]


def test_a_first_batch_without_records_that_is_repeated_has_none(
    cluster: Cluster, topic: str, open_reader: Any
) -> None:
    first_run = open_reader(topic, startingOffsets="latest")
    start = first_run.initialOffset()
    end = first_run.latestOffset(start, ALL)
    assert end == start
    write(cluster, TopicPartition(topic, 0), b"a")
    second_run = open_reader(topic, startingOffsets="latest")
    assert second_run.partitions(second_run.initialOffset(), end) == []
    later = second_run.latestOffset(end, ALL)
    assert read_all(second_run, second_run.partitions(end, later)) == [{"value": b"a"}]


def test_by_default_a_stream_starts_at_the_end(
    bootstrap: str, cluster: Cluster, topic: str
) -> None:
    write(cluster, TopicPartition(topic, 0), b"a")
    given = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic}
    reader = OttlaStreamReader(parse_source_options(given, Use.STREAM), schema("value"))
    assert offsets(reader.initialOffset()) == {f"{topic}-0": 1}
    reader.stop()


def test_a_stream_of_a_topic_that_is_not_there_does_not_start(open_reader: Any) -> None:
    with pytest.raises(UnknownPartition, match="nowhere"):
        open_reader("nowhere").initialOffset()


def test_a_limit_is_shared_by_the_partitions(cluster: Cluster, open_reader: Any) -> None:
    topic = create_topic(cluster, partitions=2)
    write(cluster, TopicPartition(topic, 0), *[b"x"] * 90)
    write(cluster, TopicPartition(topic, 1), *[b"x"] * 10)
    reader = open_reader(topic, maxOffsetsPerTrigger="10")
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(10)
    first = reader.latestOffset(reader.initialOffset(), limit)
    assert offsets(first) == {f"{topic}-0": 9, f"{topic}-1": 1}
    assert open_reader(topic).getDefaultReadLimit() == ReadAllAvailable()


def test_available_now_ends_where_it_was_when_it_began(
    cluster: Cluster, topic: str, open_reader: Any
) -> None:
    topic_partition = TopicPartition(topic, 0)
    reader = open_reader(topic)
    write(cluster, topic_partition, b"a", b"b")
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    write(cluster, topic_partition, b"c")
    add_partitions(cluster, topic, 2)
    first = reader.latestOffset(start, ReadMaxRows(1))
    second = reader.latestOffset(first, ReadMaxRows(1))
    assert offsets(second) == {f"{topic}-0": 2}
    assert reader.latestOffset(second, ReadMaxRows(1)) == second


def test_new_partitions_and_topics_are_read_from_their_start(
    cluster: Cluster, topic: str, open_reader: Any
) -> None:
    reader = open_reader(subscribePattern=f"{topic}.*")
    start = reader.initialOffset()
    add_partitions(cluster, topic, 2)
    other = create_topic(cluster, name=f"{topic}-other")
    write(cluster, TopicPartition(topic, 1), b"a", b"b")
    write(cluster, TopicPartition(other, 0), b"c")
    end = reader.latestOffset(start, ReadMaxRows(1_000))
    assert ranges(reader.partitions(start, end)) == [(f"{topic}-1", 0, 2), (f"{other}-0", 0, 1)]


def test_a_new_partition_that_lost_records_already(
    cluster: Cluster, topic: str, open_reader: Any
) -> None:
    reader = open_reader(topic)
    start = reader.initialOffset()
    add_partitions(cluster, topic, 2)
    write(cluster, TopicPartition(topic, 1), b"a", b"b")
    delete_records(cluster, TopicPartition(topic, 1), 1)
    with pytest.raises(DataLoss, match=f"{topic}-1 is new and begins at 1, not at 0"):
        reader.partitions(start, reader.latestOffset(start, ALL))


def test_a_topic_that_is_gone(
    cluster: Cluster, topic: str, open_reader: Any, caplog: pytest.LogCaptureFixture
) -> None:
    other = create_topic(cluster)
    reader = open_reader(f"{topic},{other}")
    start = reader.initialOffset()
    delete_topic(cluster, topic)
    write(cluster, TopicPartition(other, 0), b"a")
    end = reader.latestOffset(start, ALL)
    with pytest.raises(DataLoss, match=f"{topic}-0 no longer exists"):
        reader.partitions(start, end)
    lenient = open_reader(f"{topic},{other}", failOnDataLoss="false")
    with caplog.at_level(logging.WARNING):
        assert ranges(lenient.partitions(start, end)) == [(f"{other}-0", 0, 1)]
    assert f"{topic}-0 no longer exists" in caplog.text


def test_a_topic_that_was_made_again_is_read_from_its_start(
    cluster: Cluster, topic: str, open_reader: Any, caplog: pytest.LogCaptureFixture
) -> None:
    topic_partition = TopicPartition(topic, 0)
    write(cluster, topic_partition, b"a", b"b")
    reader = open_reader(topic)
    start = reader.latestOffset(reader.initialOffset(), ALL)
    delete_topic(cluster, topic)
    create_topic(cluster, name=topic)
    write(cluster, topic_partition, b"c", b"d", b"e")
    end = reader.latestOffset(start, ALL)
    with pytest.raises(DataLoss, match=f"{topic}-0 was deleted and made again"):
        reader.partitions(start, end)
    lenient = open_reader(topic, failOnDataLoss="false")
    with caplog.at_level(logging.WARNING):
        assert ranges(lenient.partitions(start, end)) == [(f"{topic}-0", 0, 3)]
    assert "deleted and made again" in caplog.text


def test_a_partition_that_became_shorter(topic: str, open_reader: Any) -> None:
    reader = open_reader(topic)
    end = reader.initialOffset()
    topic_partition, ids = TopicPartition(topic, 0), parse_stream_offset(end).topic_ids
    start = StreamOffset({topic_partition: 5}, ids).as_json()
    with pytest.raises(DataLoss, match=f"{topic}-0 was read up to 5 and ends at 0 now"):
        reader.partitions(start, end)
    assert open_reader(topic, failOnDataLoss="false").partitions(start, end) == []


def test_committed_offsets_show_how_far_a_query_is(
    cluster: Cluster, topic: str, open_reader: Any
) -> None:
    reader = open_reader(topic, commitGroup=f"{topic}-group")
    start = reader.initialOffset()
    write(cluster, TopicPartition(topic, 0), b"a", b"b")
    reader.commit(reader.latestOffset(start, ALL))
    topic_partition = TopicPartition(topic, 0)
    assert committed_offsets(cluster, f"{topic}-group", [topic_partition]) == {topic_partition: 2}


def test_a_commit_that_fails_is_only_said(
    topic: str, open_reader: Any, caplog: pytest.LogCaptureFixture
) -> None:
    reader = open_reader(topic, commitGroup="g", **{"kafka.default.api.timeout.ms": "1"})
    with caplog.at_level(logging.WARNING):
        reader.commit({"nowhere": {"0": 1}})
    assert "offsets are not committed for group g" in caplog.text


def test_offsets_are_written_as_sparks_kafka_source_does_and_alike_when_equal() -> None:
    ten, two = TopicPartition("t", 10), TopicPartition("t", 2)
    other = TopicPartition("s", 0)
    written = StreamOffset({ten: 1, other: 3, two: 2}, {"t": "id", "x": "id"}).as_json()
    assert list(written) == ["s", "t", "@ids"]
    assert list(written["t"].items()) == [("2", 2), ("10", 1)]
    assert written["@ids"] == {"t": "id"}
    assert StreamOffset({two: 2}, {}).as_json() == {"t": {"2": 2}}
    assert parse_stream_offset(written) == StreamOffset({ten: 1, other: 3, two: 2}, {"t": "id"})
