import pytest
from tests.client.wire.batches import batch
from tests.pyspark_ottla.rows import delete_records

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.errors import OffsetOutOfRange
from ottla.client.wire.producing import produce
from ottla.client.wire.reading import read_records


@pytest.fixture
def partition(cluster: Cluster, topic: str) -> TopicPartition:
    """With records of the values a to f at the offsets 0 to 5, in three batches."""
    partition = TopicPartition(topic, 0)
    for values in ((b"a", b"b"), (b"c", b"d"), (b"e", b"f")):
        produce(cluster, {partition: batch(*values)})
    return partition


def values(cluster: Cluster, partition: TopicPartition, start: int, end: int) -> list[bytes | None]:
    return [record.value for record in read_records(cluster, partition, start, end)]


def test_a_range_may_begin_and_end_inside_a_batch(
    cluster: Cluster, partition: TopicPartition
) -> None:
    assert values(cluster, partition, 0, 6) == [b"a", b"b", b"c", b"d", b"e", b"f"]
    assert values(cluster, partition, 1, 4) == [b"b", b"c", b"d"]
    assert values(cluster, partition, 3, 3) == []


def test_records_that_are_deleted_are_left_out(cluster: Cluster, partition: TopicPartition) -> None:
    delete_records(cluster, partition, 3)
    assert values(cluster, partition, 0, 6) == [b"d", b"e", b"f"]


def test_a_log_that_ends_before_the_range_begins_is_an_error(
    cluster: Cluster, partition: TopicPartition
) -> None:
    with pytest.raises(OffsetOutOfRange):
        values(cluster, partition, 7, 8)
