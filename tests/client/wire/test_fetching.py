from pathlib import Path

import pytest
from tests.broker_process import BrokerProcess
from tests.client.topics import create_topic
from tests.client.wire.batches import batch, values_of

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.errors import OffsetOutOfRange
from ottla.client.wire.fetching import Fetcher
from ottla.client.wire.offsets import Isolation
from ottla.client.wire.producing import (
    add_partitions,
    end_transaction,
    init_transactions,
    produce,
)
from ottla.records.isolation import scan_batches


def read_all(fetcher: Fetcher, end: int, *, ask: bool = False) -> list[bytes | None]:
    values: list[bytes | None] = []
    offset = 0
    while offset < end:
        fetched = fetcher.fetch(offset)
        scan = scan_batches(fetched.records, offset, end, fetched.aborted)
        offset = scan.next_offset
        if ask:
            fetcher.ask(offset)
        values += [value for found in scan.batches for value in values_of(fetched.records, found)]
    return values


@pytest.mark.parametrize("ask", [False, True])
def test_batches_come_in_order_whatever_the_size_of_an_answer(
    cluster: Cluster, topic: str, ask: bool
) -> None:
    topic_partition = TopicPartition(topic, 0)
    for number in range(20):
        produce(cluster, {topic_partition: batch(b"%d" % number, b"x" * 1000)})
    with Fetcher(cluster, topic_partition, bytes_max=3_000) as fetcher:
        values = read_all(fetcher, 40, ask=ask)
    assert values[0::2] == [b"%d" % number for number in range(20)]


def test_what_was_asked_for_and_is_not_wanted_is_dropped(cluster: Cluster, topic: str) -> None:
    topic_partition = TopicPartition(topic, 0)
    produce(cluster, {topic_partition: batch(b"a")})
    produce(cluster, {topic_partition: batch(b"b")})
    with Fetcher(cluster, topic_partition) as fetcher:
        fetcher.ask(0)
        fetched = fetcher.fetch(1)
        (found,) = scan_batches(fetched.records, 1, 2).batches
        assert values_of(fetched.records, found) == [b"b"]


def test_the_next_fetcher_has_the_connection_of_the_last_one(cluster: Cluster, topic: str) -> None:
    topic_partition = TopicPartition(topic, 0)
    produce(cluster, {topic_partition: batch(b"a")})
    with Fetcher(cluster, topic_partition) as fetcher:
        fetcher.fetch(0)
        used = fetcher._connection
    again = cluster.own_connection_to_leader(topic_partition)
    assert again is used
    other = cluster.own_connection_to_leader(topic_partition)
    cluster.give_back(again)
    cluster.give_back(other)
    assert cluster.own_connection_to_leader(topic_partition) is other
    other.close()


def test_a_connection_with_an_answer_on_its_way_is_not_used_again(
    cluster: Cluster, topic: str
) -> None:
    topic_partition = TopicPartition(topic, 0)
    produce(cluster, {topic_partition: batch(b"a")})
    with Fetcher(cluster, topic_partition) as fetcher:
        fetcher.ask(0)
    with Fetcher(cluster, topic_partition) as fetcher:
        assert read_all(fetcher, 1) == [b"a"]


def test_nothing_to_fetch_is_an_empty_answer(cluster: Cluster, topic: str) -> None:
    with Fetcher(cluster, TopicPartition(topic, 0), wait_ms=1) as fetcher:
        fetched = fetcher.fetch(0)
    assert len(fetched.records) == 0
    assert (fetched.log_start_offset, fetched.high_watermark) == (0, 0)


def test_an_offset_that_is_not_there(cluster: Cluster, topic: str) -> None:
    with (
        Fetcher(cluster, TopicPartition(topic, 0)) as fetcher,
        pytest.raises(OffsetOutOfRange, match=f"fetch of {topic}-0 at offset 5"),
    ):
        fetcher.fetch(5)


def test_a_reader_of_committed_records_hears_of_aborted_transactions(
    cluster: Cluster, topic: str
) -> None:
    topic_partition = TopicPartition(topic, 0)
    for commit in (True, False, True):
        producer = init_transactions(cluster, f"{topic}-writer", 60_000).producer
        add_partitions(cluster, f"{topic}-writer", producer, [topic_partition])
        data = batch(b"kept" if commit else b"gone", producer=producer, transactional=True)
        produce(cluster, {topic_partition: data}, f"{topic}-writer")
        end_transaction(cluster, f"{topic}-writer", producer, commit=commit)
    with Fetcher(cluster, topic_partition, Isolation.READ_COMMITTED) as fetcher:
        assert read_all(fetcher, 6) == [b"kept", b"kept"]
    with Fetcher(cluster, topic_partition) as fetcher:
        assert read_all(fetcher, 6) == [b"kept", b"gone", b"kept"]


@pytest.mark.process
def test_a_fetcher_goes_on_when_its_broker_comes_back(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker, Cluster(broker.bootstrap) as cluster:
        topic_partition = TopicPartition(create_topic(cluster), 0)
        produce(cluster, {topic_partition: batch(b"before")})
        with Fetcher(cluster, topic_partition) as fetcher:
            fetcher.fetch(0)
            fetcher.ask(1)
            broker.stop()
            broker.start()
            produce(cluster, {topic_partition: batch(b"after")})
            fetched = fetcher.fetch(1)
            (found,) = scan_batches(fetched.records, 1, 2).batches
            assert values_of(fetched.records, found) == [b"after"]
