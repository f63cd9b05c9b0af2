import pytest
from tests.client.topics import create_topic
from tests.client.wire.batches import batch

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.errors import BrokerError
from ottla.client.wire.offsets import LATEST, list_offsets
from ottla.client.wire.producing import (
    add_partitions,
    end_transaction,
    init_producer,
    init_transactions,
    produce,
)
from ottla.protocol.errors import ErrorCode


def test_one_batch_to_each_of_many_partitions(cluster: Cluster) -> None:
    first, second = (TopicPartition(create_topic(cluster, partitions=2), index) for index in (0, 1))
    assert produce(cluster, {first: batch(b"a"), second: batch(b"b", b"c")}) == {
        first: 0,
        second: 0,
    }
    assert produce(cluster, {second: batch(b"d")}) == {second: 2}


def test_a_batch_of_an_idempotent_producer_is_written_once(cluster: Cluster, topic: str) -> None:
    topic_partition = TopicPartition(topic, 0)
    data = batch(b"a", producer=init_producer(cluster))
    assert produce(cluster, {topic_partition: data}) == {topic_partition: 0}
    assert produce(cluster, {topic_partition: data}) == {topic_partition: 0}
    assert list_offsets(cluster, {topic_partition: LATEST}) == {topic_partition: 1}


def test_a_batch_that_is_refused_is_said_with_its_partition(cluster: Cluster, topic: str) -> None:
    topic_partition = TopicPartition(topic, 0)
    producer = init_producer(cluster)
    produce(cluster, {topic_partition: batch(b"a", producer=producer)})
    with pytest.raises(BrokerError, match=f"write to partition {topic}-0") as refused:
        produce(cluster, {topic_partition: batch(b"b", producer=producer, sequence=7)})
    assert refused.value.code is ErrorCode.out_of_order_sequence_number


def test_a_later_producer_of_the_same_id_fences_the_first(cluster: Cluster, topic: str) -> None:
    topic_partition = TopicPartition(topic, 0)
    first = init_transactions(cluster, topic, 60_000).producer
    second = init_transactions(cluster, topic, 60_000).producer
    assert second.id == first.id
    assert second.epoch > first.epoch
    with pytest.raises(BrokerError) as fenced:
        add_partitions(cluster, topic, first, [topic_partition])
    assert fenced.value.code in (
        ErrorCode.invalid_producer_epoch,
        ErrorCode.producer_fenced,
    )


def test_somebody_else_ends_the_transaction(bootstrap: str, cluster: Cluster, topic: str) -> None:
    topic_partition = TopicPartition(topic, 0)
    producer = init_transactions(cluster, topic, 60_000).producer
    add_partitions(cluster, topic, producer, [topic_partition])
    produce(cluster, {topic_partition: batch(b"a", producer=producer, transactional=True)}, topic)
    with Cluster(bootstrap) as other:
        end_transaction(other, topic, producer, commit=True)
        end_transaction(other, topic, producer, commit=True)
        with pytest.raises(BrokerError, match="invalid txn state"):
            end_transaction(other, topic, producer, commit=False)
