import pyarrow as pa
import pytest
from kafka.partitioner.default import murmur2
from tests.client.topics import create_topic
from tests.pyspark_ottla.sink.written import portion, records, values

from ottla.client.wire.cluster import Cluster
from ottla.client.wire.producing import end_transaction, init_producer, init_transactions
from pyspark_ottla.sink import producer as producer_module
from pyspark_ottla.sink.options import SinkOptions, parse_sink_options
from pyspark_ottla.sink.partitioner import NoSuchPartition
from pyspark_ottla.sink.producer import TaskProducer, portions


def options(bootstrap: str, **others: str) -> SinkOptions:
    given = {"kafka.bootstrap.servers": bootstrap, "delivery": "at_least_once", **others}
    return parse_sink_options(given, is_stream=True)


def test_rows_are_gathered_into_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_module, "_PORTION_ROWS", 3)
    batches = [pa.RecordBatch.from_pydict({"value": ["v"] * count}) for count in (2, 0, 2, 4, 1, 1)]
    assert [gathered.rows for gathered in portions(batches)] == [4, 4, 2]
    assert list(portions([])) == []


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_rows_of_several_portions_with_every_codec(
    cluster: Cluster, bootstrap: str, topic: str, codec: str
) -> None:
    chosen = options(bootstrap, topic=topic, compression=codec)
    with TaskProducer(chosen, cluster, init_producer(cluster)) as writer:
        for number in range(3):
            writer.write(portion(f"a{number}", f"b{number}"))
    written = [record.value for record in records(cluster, topic)[0]]
    assert written == [b"a0", b"b0", b"a1", b"b1", b"a2", b"b2"]


def test_keys_headers_and_times_arrive_in_their_partitions(
    cluster: Cluster, bootstrap: str
) -> None:
    topic = create_topic(cluster, partitions=4)
    keys = [f"key-{number}" for number in range(20)]
    headers = [[{"key": "h", "value": b"x"}]] * 20
    rows = portion(*keys, key=keys, headers=headers, topic=[topic] * 20)
    with TaskProducer(options(bootstrap), cluster, init_producer(cluster)) as writer:
        writer.write(rows)
    for partition, found in records(cluster, topic).items():
        expected = [key for key in keys if (murmur2(key.encode()) & 0x7FFFFFFF) % 4 == partition]
        assert [record.key for record in found] == [key.encode() for key in expected]
        assert all(record.headers == (("h", b"x"),) for record in found)


def test_a_batch_that_is_too_large_for_one_is_several(
    cluster: Cluster, bootstrap: str, topic: str
) -> None:
    large = [f"{number}" * 400_000 for number in range(5)]
    with TaskProducer(options(bootstrap, topic=topic), cluster, init_producer(cluster)) as writer:
        writer.write(portion(*large))
        writer.write(portion("last"))
    assert values(cluster, topic) == sorted([*large, "last"])


def test_what_is_written_in_a_transaction_counts_when_that_is_committed(
    cluster: Cluster, bootstrap: str, topic: str
) -> None:
    producer = init_transactions(cluster, topic, 60_000).producer
    chosen = options(bootstrap, topic=topic)
    with TaskProducer(chosen, cluster, producer, transactional_id=topic) as writer:
        writer.write(portion("a"))
        writer.write(portion("b"))
    end_transaction(cluster, topic, producer, commit=True)
    assert values(cluster, topic) == ["a", "b"]


def test_a_row_that_cannot_be_written_is_said(bootstrap: str, cluster: Cluster, topic: str) -> None:
    writer = TaskProducer(options(bootstrap, topic=topic), cluster, init_producer(cluster))
    with writer, pytest.raises(NoSuchPartition, match="a row asks for 9"):
        writer.write(portion("a", partition=[9]))


def test_rows_without_a_key_change_partition_with_each_portion(
    cluster: Cluster, bootstrap: str
) -> None:
    topic = create_topic(cluster, partitions=3)
    chosen = options(bootstrap, topic=topic)
    with TaskProducer(chosen, cluster, init_producer(cluster), first_partition=2) as writer:
        writer.write(portion("a", "b"))
        writer.write(portion("c"))
    found = {
        partition: [record.value for record in batch]
        for partition, batch in records(cluster, topic).items()
    }
    assert found == {0: [b"c"], 1: [], 2: [b"a", b"b"]}
