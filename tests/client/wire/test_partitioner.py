from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as other_murmur2

from ottla.client.wire.partitioner import murmur2, partition_of


@given(st.binary(max_size=40))
def test_keys_have_the_partitions_of_other_clients(key: bytes) -> None:
    assert murmur2(key) == other_murmur2(key) & 0xFFFFFFFF
    assert partition_of(key, 7) == (other_murmur2(key) & 0x7FFFFFFF) % 7
