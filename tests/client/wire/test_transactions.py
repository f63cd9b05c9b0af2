import re

import pytest
from tests.client.topics import create_topic
from tests.client.wire.batches import batch

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.errors import BrokerError
from ottla.client.wire.producing import add_partitions, end_transaction, init_transactions, produce
from ottla.client.wire.transactions import (
    OpenIdsQuestion,
    OpenTransaction,
    abort_by_ids,
    abort_transactions,
    commit_transactions,
    list_open_ids,
)
from ottla.protocol.errors import ErrorCode


@pytest.fixture
def topic_partition(topic: str) -> TopicPartition:
    return TopicPartition(topic, 0)


def open_transaction(
    cluster: Cluster, name: str, topic_partition: TopicPartition
) -> OpenTransaction:
    transactional_id = f"{topic_partition.topic}.{name}"
    producer = init_transactions(cluster, transactional_id, 60_000).producer
    add_partitions(cluster, transactional_id, producer, [topic_partition])
    data = batch(name.encode(), producer=producer, transactional=True)
    produce(cluster, {topic_partition: data}, transactional_id)
    return OpenTransaction(transactional_id, producer)


def test_open_transactions_are_found_by_a_pattern_of_their_ids(
    cluster: Cluster, topic_partition: TopicPartition
) -> None:
    first = open_transaction(cluster, "a-1", topic_partition)
    second = open_transaction(cluster, "a-2", topic_partition)
    open_transaction(cluster, "b-1", topic_partition)
    commit_transactions(cluster, [second])
    prefix = re.escape(f"{topic_partition.topic}.a-")
    assert list_open_ids(cluster, prefix + ".*") == [first.transactional_id]
    assert list_open_ids(cluster, prefix) == []


def test_open_transactions_are_asked_for_while_something_else_is_done(
    cluster: Cluster, topic_partition: TopicPartition
) -> None:
    before = open_transaction(cluster, "before", topic_partition)
    pattern = re.escape(f"{topic_partition.topic}.") + ".*"
    for _ in range(2):  # The second one gets the connections of the first.
        with OpenIdsQuestion(cluster, pattern) as question:
            cluster.topics()
            assert question.answer() == [before.transactional_id]


def test_open_transactions_are_asked_for_again_when_connections_break(
    cluster: Cluster, topic_partition: TopicPartition
) -> None:
    before = open_transaction(cluster, "before", topic_partition)
    pattern = re.escape(f"{topic_partition.topic}.") + ".*"
    with OpenIdsQuestion(cluster, pattern) as question:
        for connection in question._connections:
            connection.close()
        assert question.answer() == [before.transactional_id]


def test_a_broker_that_is_gone_is_not_asked_for_open_transactions(
    cluster: Cluster, topic_partition: TopicPartition
) -> None:
    before = open_transaction(cluster, "before", topic_partition)
    pattern = re.escape(f"{topic_partition.topic}.") + ".*"
    cluster._addresses[99] = "127.0.0.1", 1
    with OpenIdsQuestion(cluster, pattern) as question:
        assert question.answer() == [before.transactional_id]


def test_many_transactions_are_committed_at_once_and_again(
    cluster: Cluster, topic_partition: TopicPartition
) -> None:
    transactions = [open_transaction(cluster, f"{number}", topic_partition) for number in range(5)]
    commit_transactions(cluster, transactions[:2])
    commit_transactions(cluster, transactions)
    commit_transactions(cluster, transactions)
    assert list_open_ids(cluster, re.escape(topic_partition.topic) + ".*") == []


def test_a_commit_says_when_one_of_many_was_aborted(
    cluster: Cluster, topic_partition: TopicPartition
) -> None:
    lost, kept = (
        open_transaction(cluster, "a", topic_partition),
        open_transaction(cluster, "b", topic_partition),
    )
    abort_by_ids(cluster, [lost.transactional_id])
    with pytest.raises(BrokerError, match=lost.transactional_id) as refused:
        commit_transactions(cluster, [lost, kept])
    assert refused.value.code in (ErrorCode.producer_fenced, ErrorCode.invalid_producer_epoch)
    with pytest.raises(BrokerError, match="invalid txn state"):
        end_transaction(cluster, *kept, commit=False)


def test_aborting_twice_or_what_was_fenced_is_no_error(
    cluster: Cluster, topic_partition: TopicPartition
) -> None:
    first, second = (
        open_transaction(cluster, "a", topic_partition),
        open_transaction(cluster, "b", topic_partition),
    )
    abort_by_ids(cluster, [second.transactional_id])
    abort_transactions(cluster, [first, second])
    abort_transactions(cluster, [first, second])
    assert list_open_ids(cluster, re.escape(topic_partition.topic) + ".*") == []


def test_a_transaction_that_was_forgotten_counts_as_ended(
    cluster: Cluster, topic_partition: TopicPartition
) -> None:
    known = open_transaction(cluster, "a", topic_partition)
    forgotten = OpenTransaction(f"{topic_partition.topic}.never", known.producer)
    commit_transactions(cluster, [known, forgotten])


def test_no_transaction_is_nothing_to_do(cluster: Cluster) -> None:
    commit_transactions(cluster, [])


def test_a_topic_to_write_is_made(cluster: Cluster) -> None:
    existing = create_topic(cluster, partitions=3)
    assert len(cluster.topic_to_write(existing).leaders) == 3
    missing = f"{existing}-new"
    assert cluster.topic_to_write(missing).leaders
    assert missing in cluster.topics([missing])


def test_the_controller_and_every_broker_answer(cluster: Cluster) -> None:
    assert cluster.every_broker()
    assert cluster.controller().address
