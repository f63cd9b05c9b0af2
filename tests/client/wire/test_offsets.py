import pytest
from tests.client.topics import create_topic
from tests.client.wire.batches import batch

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.errors import BrokerError
from ottla.client.wire.offsets import EARLIEST, LATEST, Isolation, list_offsets
from ottla.client.wire.producing import (
    add_partitions,
    end_transaction,
    init_transactions,
    produce,
)
from ottla.protocol.errors import ErrorCode


def test_ends_and_times_of_many_partitions(cluster: Cluster) -> None:
    first, second = (TopicPartition(create_topic(cluster, partitions=2), index) for index in (0, 1))
    for hour in range(3):
        produce(cluster, {first: batch(b"a", b"b", timestamp=hour * 3_600_000)})
    produce(cluster, {second: batch(b"c", timestamp=0)})
    assert list_offsets(cluster, {first: LATEST, second: LATEST}) == {first: 6, second: 1}
    assert list_offsets(cluster, {first: EARLIEST, second: LATEST}) == {first: 0, second: 1}
    times = {first: 3_600_000, second: 3_600_000}
    assert list_offsets(cluster, times) == {first: 2, second: None}


def test_a_partition_that_does_not_exist(bootstrap: str, topic: str) -> None:
    with (
        Cluster(bootstrap, retry_timeout_ms=1) as cluster,
        pytest.raises(BrokerError, match=f"partition {topic}-3") as raised,
    ):
        list_offsets(cluster, {TopicPartition(topic, 3): LATEST})
    assert raised.value.code is ErrorCode.unknown_topic_or_partition


def test_for_a_reader_of_committed_records_an_open_transaction_is_the_end(
    cluster: Cluster, topic: str
) -> None:
    topic_partition = TopicPartition(topic, 0)
    produce(cluster, {topic_partition: batch(b"a")})
    producer = init_transactions(cluster, topic, 60_000).producer
    add_partitions(cluster, topic, producer, [topic_partition])
    produce(cluster, {topic_partition: batch(b"b", producer=producer, transactional=True)}, topic)
    latest = {topic_partition: LATEST}
    assert list_offsets(cluster, latest) == {topic_partition: 2}
    assert list_offsets(cluster, latest, Isolation.READ_COMMITTED) == {topic_partition: 1}
    end_transaction(cluster, topic, producer, commit=False)
    while list_offsets(cluster, latest, Isolation.READ_COMMITTED) != {topic_partition: 3}:
        pass  # The marker is written a moment after the response.
