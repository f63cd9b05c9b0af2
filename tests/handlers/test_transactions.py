"""The transaction driver, when a marker cannot be written at once."""

from uuid import UUID

import pytest
from kio.schema.add_partitions_to_txn.v5.request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.describe_transactions.v0.request import DescribeTransactionsRequest
from kio.schema.end_txn.v5.request import EndTxnRequest
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.init_producer_id.v6.request import InitProducerIdRequest
from kio.schema.txn_offset_commit.v5.request import TxnOffsetCommitRequestPartition
from tests.controller.test_topics import creation, topic
from tests.kits.world import until
from tests.replication.roles import leader_of

from ottla.handlers.add_partitions_to_txn import handle as handle_add_partitions_to_txn
from ottla.handlers.create_topics import handle as handle_create_topics
from ottla.handlers.delete_topics import handle as handle_delete_topics
from ottla.handlers.describe_transactions import handle as handle_describe_transactions
from ottla.handlers.end_txn import handle as handle_end_txn
from ottla.handlers.find_coordinator import handle as handle_find_coordinator
from ottla.handlers.init_producer_id import handle as handle_init_producer_id
from ottla.handlers.txn_offset_commit import handle as handle_txn_offset_commit
from ottla.machine.transactional import TransactionMarker
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
)
from ottla.protocol.times import milliseconds
from ottla.protocol.topics import (
    CONSUMER_OFFSETS_TOPIC,
    TRANSACTION_STATE_TOPIC,
    TopicPartition,
)
from ottla.runtime.flusher import Flusher


@pytest.fixture
def node(start_node):
    return start_with_topics(start_node)


def start_with_topics(start_node, **arguments):
    node = start_node(transaction_state_log_num_partitions=1, **arguments)
    node.call(handle_create_topics, creation(topic("orders", 2, 1), topic("prices", 1, 1)))
    node.call(handle_find_coordinator, FindCoordinatorRequest(key_type=1, coordinator_keys=("x",)))
    node.run(until(lambda: node.broker.transactions.coordinators.is_served(0)))
    return node


def init(node):
    request = InitProducerIdRequest(transactional_id="x", transaction_timeout=milliseconds(60_000))
    response = node.call(handle_init_producer_id, request)
    assert response.error_code is ErrorCode.none
    return response


def open_transaction(node, **topics):
    producer = init(node)
    add(node, producer, **topics)
    return producer


def add(node, producer, **topics):
    transaction = AddPartitionsToTxnTransaction(
        transactional_id="x",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        topics=tuple(
            AddPartitionsToTxnTopic(name=name, partitions=partitions)
            for name, partitions in topics.items()
        ),
    )
    request = AddPartitionsToTxnRequest(transactions=(transaction,))
    response = node.call(handle_add_partitions_to_txn, request, api_version=3)
    (result,) = response.results_by_transaction
    assert all(
        partition_result.partition_error_code is ErrorCode.none
        for found in result.topic_results
        for partition_result in found.results_by_partition
    )


def commit(node, producer):
    request = EndTxnRequest(
        transactional_id="x",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        committed=True,
    )
    assert node.call(handle_end_txn, request, api_version=3).error_code is ErrorCode.none


def state(node):
    request = DescribeTransactionsRequest(transactional_ids=("x",))
    (described,) = node.call(handle_describe_transactions, request).transaction_states
    return described.transaction_state


def end_offset(node, name, partition):
    return node.partition(name, partition).log.log_end_offset


def wait(node, seconds):
    node.run(node.broker.transactions.completion.wait("x", seconds))


def wait_for_marker(node, name, partition):
    node.run(until(lambda: end_offset(node, name, partition) > 0))


def test_markers_are_written_to_every_partition(node):
    commit(node, open_transaction(node, orders=(0, 1), prices=(0,)))
    wait(node, 120)
    assert state(node) == "CompleteCommit"
    for name, partition in (("orders", 0), ("orders", 1), ("prices", 0)):
        assert end_offset(node, name, partition) == 1


def test_silent_producers_expire_at_their_own_interval(start_node):
    node = start_with_topics(
        start_node,
        producer_id_expiration_ms=2_000,
        producer_id_expiration_check_interval_ms=500,
    )
    commit(node, open_transaction(node, orders=(0,)))
    wait(node, 120)
    producers = node.partition("orders", 0).log.producers
    assert len(list(producers)) == 1
    began_s = node.process.time()
    node.run(until(lambda: not list(producers)))
    assert node.process.time() - began_s < 10  # Simulated; the default is 600.


def test_a_marker_is_tried_again_until_it_is_written(node):
    partition = node.partition("orders", 1)
    leader = leader_of(partition)
    in_sync, leader.in_sync_replicas = leader.in_sync_replicas, ()
    commit(node, open_transaction(node, orders=(0, 1)))
    wait_for_marker(node, "orders", 0)
    wait(node, 0.1)  # Without effect; the other partition gets its marker once.
    assert state(node) == "PrepareCommit"
    assert (end_offset(node, "orders", 0), end_offset(node, "orders", 1)) == (1, 0)
    leader.in_sync_replicas = in_sync
    wait(node, 120)
    assert state(node) == "CompleteCommit"
    assert (end_offset(node, "orders", 0), end_offset(node, "orders", 1)) == (1, 1)


def test_in_another_epoch_of_the_coordinator_every_marker_is_written_again(node):
    """Another coordinator may have ended this one meanwhile and begun another."""
    partition = node.partition("orders", 1)
    leader = leader_of(partition)
    in_sync, leader.in_sync_replicas = leader.in_sync_replicas, ()
    commit(node, open_transaction(node, orders=(0, 1)))
    wait_for_marker(node, "orders", 0)
    assert (end_offset(node, "orders", 0), end_offset(node, "orders", 1)) == (1, 0)
    node.partition(TRANSACTION_STATE_TOPIC, 0).become_leader(1, (1,))
    leader.in_sync_replicas = in_sync
    wait(node, 120)
    assert state(node) == "CompleteCommit"
    assert (end_offset(node, "orders", 0), end_offset(node, "orders", 1)) == (2, 1)


def test_a_deleted_topic_does_not_hold_up_the_others(node):
    producer = open_transaction(node, orders=(0,), prices=(0,))
    deletion = DeleteTopicsRequest(
        topics=(DeleteTopicState(name="prices", topic_id=None),), timeout=milliseconds(60_000)
    )
    node.call(handle_delete_topics, deletion)
    commit(node, producer)
    wait(node, 120)
    assert state(node) == "CompleteCommit"
    assert end_offset(node, "orders", 0) == 1


def commit_offset(node, producer):
    partition = TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=5, committed_metadata=""
    )
    request = TxnOffsetCommitRequest(
        transactional_id="x",
        group_id="readers",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        topics=(TxnOffsetCommitRequestTopic(name="orders", partitions=(partition,)),),
    )
    response = node.call(handle_txn_offset_commit, request, api_version=5)
    assert response.topics[0].partitions[0].error_code is ErrorCode.none


def test_offsets_are_committed_by_the_ids_of_topics(start_node):
    node = start_with_topics(start_node, offsets_topic_num_partitions=1)
    node.call(handle_find_coordinator, FindCoordinatorRequest(key_type=0, coordinator_keys=("g",)))
    node.run(until(lambda: node.broker.groups.is_served(0)))
    producer = init(node)
    ids = (node.image.topic_id("orders"), UUID(int=77), None)
    partition = TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=5, committed_metadata=""
    )
    request = TxnOffsetCommitRequest(
        transactional_id="x",
        group_id="readers",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        topics=tuple(
            TxnOffsetCommitRequestTopic(topic_id=each, partitions=(partition,)) for each in ids
        ),
    )
    response = node.call(handle_txn_offset_commit, request, api_version=6)
    assert [(topic.topic_id, topic.partitions[0].error_code) for topic in response.topics] == [
        (ids[0], ErrorCode.none),
        (ids[1], ErrorCode.unknown_topic_id),
        (ids[2], ErrorCode.unknown_topic_id),
    ]
    commit(node, producer)
    wait(node, 120)
    runtime = node.broker.groups.find("readers")
    committed = runtime.machine.committed_offsets("readers")
    assert {tuple(key): each.value.offset for key, each in committed.items()} == {("orders", 0): 5}


def test_topics_of_a_commit_are_not_compared_with_each_other(start_node, monkeypatch):
    """One megabyte names 30,000 topics: comparing all pairs would take a minute."""
    node = start_with_topics(start_node, offsets_topic_num_partitions=1)
    producer = init(node)
    request = TxnOffsetCommitRequest(
        transactional_id="x",
        group_id="readers",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        topics=tuple(
            TxnOffsetCommitRequestTopic(topic_id=UUID(int=number), partitions=())
            for number in (77, 78, 77)
        ),
    )

    def refuse(*_):
        raise AssertionError("topics are compared")

    monkeypatch.setattr(TxnOffsetCommitRequestTopic, "__eq__", refuse)
    response = node.call(handle_txn_offset_commit, request, api_version=6)
    assert [topic.topic_id.int for topic in response.topics] == [77, 78, 77]


def test_a_marker_of_the_transaction_before_does_not_end_what_a_newer_client_commits(
    start_node,
):
    node = start_with_topics(start_node, offsets_topic_num_partitions=1)
    node.call(handle_find_coordinator, FindCoordinatorRequest(key_type=0, coordinator_keys=("g",)))
    node.run(until(lambda: node.broker.groups.is_served(0)))
    producer = init(node)
    commit_offset(node, producer)
    topic_partition = TopicPartition(CONSUMER_OFFSETS_TOPIC, 0)

    def write(epoch):
        marker = TransactionMarker(producer.producer_id, epoch, 0, committed=True)
        node.run(node.broker.transactions.markers.write(topic_partition, marker, 2))

    with pytest.raises(ApiError) as late:
        write(producer.producer_epoch)
    assert late.value.code is ErrorCode.invalid_producer_epoch
    log = node.partition(*topic_partition).log
    assert log.producers.first_undecided_offset is not None
    write(producer.producer_epoch + 1)
    assert log.producers.first_undecided_offset is None


def test_each_step_of_a_transaction_is_one_sync(node, monkeypatch):
    """The end of a transaction and the beginning of the next, which waits for it, share one."""
    producer = init(node)
    synced, request = [], Flusher.request

    def recorded(flusher, log, callback):
        synced.append(log.topic_partition.topic)
        request(flusher, log, callback)

    monkeypatch.setattr(Flusher, "request", recorded)
    for _ in range(3):
        add(node, producer, orders=(0,))
        commit(node, producer)
    add(node, producer, orders=(0,))
    begin, decide, mark = "__transaction_state", "__transaction_state", "orders"
    assert synced == [begin, decide, mark] * 3 + [begin]
