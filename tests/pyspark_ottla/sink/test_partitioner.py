import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as murmur2_of_kafka_python

from pyspark_ottla.sink.partitioner import NoSuchPartition, choose_partitions, murmur2


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(0, 5))
def test_murmur2_is_kafkas(keys: list[bytes], skipped: int) -> None:
    array = pa.array(keys, pa.binary())[skipped:]
    expected = [murmur2_of_kafka_python(key) & 0xFFFFFFFF for key in keys[skipped:]]
    assert murmur2(array).tolist() == expected


def test_rows_with_a_key_go_where_kafkas_producer_sends_them() -> None:
    keys = ["a", "ab", "abc", "abcd", "grüße", ""]
    expected = [(murmur2_of_kafka_python(key.encode()) & 0x7FFFFFFF) % 7 for key in keys]
    assert choose_partitions("t", pa.array(keys), None, 7, 0, len(keys)).tolist() == expected


def test_rows_without_a_key_stick_together() -> None:
    assert choose_partitions("t", None, None, 3, 5, 4).tolist() == [2, 2, 2, 2]
    keys = pa.array([None, b"k", None], pa.binary())
    chosen = choose_partitions("t", keys, None, 100, 42, 3).tolist()
    assert chosen[0] == chosen[2] == 42
    assert chosen[1] == (murmur2_of_kafka_python(b"k") & 0x7FFFFFFF) % 100


def test_a_wish_goes_before_the_key() -> None:
    keys = pa.array([b"k", b"k", None], pa.binary())
    wished = pa.array([1, None, 2], pa.int32())
    by_key = (murmur2_of_kafka_python(b"k") & 0x7FFFFFFF) % 4
    assert choose_partitions("t", keys, wished, 4, 0, 3).tolist() == [1, by_key, 2]


@pytest.mark.parametrize("wish", [-1, 4])
def test_a_partition_that_the_topic_does_not_have_is_refused(wish: int) -> None:
    wished = pa.array([0, wish], pa.int32())
    with pytest.raises(NoSuchPartition, match=f"topic t has partitions 0 to 3.* {wish}"):
        choose_partitions("t", None, wished, 4, 0, 2)
