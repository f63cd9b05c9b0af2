from uuid import uuid4

import pytest

from ottla.protocol.topics import TopicPartition
from ottla.storage.partition_names import (
    is_deleted,
    is_stray,
    name_for_deletion,
    name_for_stray,
    parse_partition,
)


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("orders-0", TopicPartition("orders", 0)),
        ("a-b-12", TopicPartition("a-b", 12)),
        ("__consumer_offsets-49", TopicPartition("__consumer_offsets", 49)),
        ("lost+found", None),
        ("meta.properties", None),
        ("orders-", None),
        ("-1", None),
        (".lock", None),
    ],
)
def test_partitions_are_known_by_their_names(name: str, partition: TopicPartition | None) -> None:
    assert parse_partition(name) == partition


@pytest.mark.parametrize("topic", ["orders", "x" * 249])
def test_names_for_deletion(topic: str) -> None:
    name = name_for_deletion(TopicPartition(topic, 1), uuid4())
    assert len(name) <= 255
    assert is_deleted(name)
    assert parse_partition(name) is None
    assert not is_deleted("orders-delete")


def test_what_is_set_aside_is_neither_a_partition_nor_deleted() -> None:
    name = name_for_stray(TopicPartition("x" * 249, 1), uuid4())
    assert len(name) <= 255
    assert is_stray(name)
    assert parse_partition(name) is None
    assert not is_deleted(name)
