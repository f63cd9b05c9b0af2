"""Writes of transactions that another broker coordinates, and what may happen in between."""

import dataclasses

import pytest
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.produce.v13.request import PartitionProduceData
from kio.schema.txn_offset_commit.v5.request import TxnOffsetCommitRequestPartition
from tests.clients.requests import batch
from tests.controller.test_topics import creation, topic
from tests.kits.world import until

from ottla.handlers.create_topics import handle as handle_create_topics
from ottla.handlers.find_coordinator import handle as handle_find_coordinator
from ottla.handlers.txn_offset_commit import handle as handle_txn_offset_commit
from ottla.machine.transactional import TransactionMarker
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages.produce import ProduceRequest, TopicProduceData
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
)
from ottla.protocol.times import milliseconds
from ottla.protocol.topics import TopicPartition

ORDERS = TopicPartition("orders", 0)
PRODUCE = 0
OLDER, ABORTABLE, NEWER = 10, 11, 12  # Versions of Produce.


class Elsewhere:
    """Answers like the coordinator; `meanwhile` runs first."""

    def __init__(self):
        self.asked = []
        self.refusal = None
        self.meanwhile = None

    def is_elsewhere(self, transactional_id):
        return True

    async def verify(self, transaction, partitions):
        await self._answer("verify", transaction, partitions)

    async def add(self, transaction, partitions):
        await self._answer("add", transaction, partitions)

    async def _answer(self, what, transaction, partitions):
        self.asked.append((what, tuple(transaction), tuple(partitions)))
        if self.meanwhile is not None:
            await self.meanwhile()
        if self.refusal is not None:
            raise ApiError(self.refusal)


@pytest.fixture
def elsewhere():
    return Elsewhere()


@pytest.fixture
def node(start_node, elsewhere):
    node = start_node()
    node.call(handle_create_topics, creation(topic("orders", 1, 1)))
    node.partition(*ORDERS)
    transactions = node.broker.transactions._replace(remote=elsewhere)
    node.use(dataclasses.replace(node.broker, transactions=transactions))
    return node


def produce(node, version, *, sequence=0, epoch=3):
    records = batch(
        b"value", producer_id=7, producer_epoch=epoch, base_sequence=sequence, transactional=True
    )
    data = PartitionProduceData(index=0, records=records)
    request = ProduceRequest(
        transactional_id="payments",
        acks=-1,
        timeout=milliseconds(60_000),
        topic_data=(TopicProduceData(name="orders", topic_id=None, partition_data=(data,)),),
    )
    (answer,) = node.ask(PRODUCE, version, request).responses[0].partition_responses
    return answer.error_code


def commit_offset(node, version):
    partition = TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=5, committed_metadata=""
    )
    request = TxnOffsetCommitRequest(
        transactional_id="payments",
        group_id="readers",
        producer_id=7,
        producer_epoch=3,
        topics=(TxnOffsetCommitRequestTopic(name="orders", partitions=(partition,)),),
    )
    response = node.call(handle_txn_offset_commit, request, api_version=version)
    return response.topics[0].partitions[0].error_code


def end_offset(node):
    return node.partition(*ORDERS).log.log_end_offset


def marker_of(node, epoch, *, version=0):
    async def write():
        marker = TransactionMarker(7, epoch, 0, committed=True)
        await node.broker.transactions.markers.write(ORDERS, marker, version)

    return write


def resignation_of(node, topic_partition):
    async def resign():
        partition = node.partition(*topic_partition)
        partition.resign(ApiError(ErrorCode.not_leader_or_follower))
        partition.become_leader(1, (1,))

    return resign


@pytest.mark.parametrize(("version", "what"), [(ABORTABLE, "verify"), (NEWER, "add")])
def test_the_coordinator_is_asked_once_in_a_transaction(node, elsewhere, version, what):
    assert produce(node, version) is ErrorCode.none
    assert produce(node, version, sequence=1) is ErrorCode.none
    assert elsewhere.asked == [(what, ("payments", 7, 3), (ORDERS,))]
    assert end_offset(node) == 2


@pytest.mark.parametrize(
    ("version", "refusal", "expected"),
    [
        (OLDER, ErrorCode.transaction_abortable, ErrorCode.invalid_txn_state),
        (ABORTABLE, ErrorCode.transaction_abortable, ErrorCode.transaction_abortable),
        (ABORTABLE, ErrorCode.coordinator_not_available, ErrorCode.not_enough_replicas),
        (ABORTABLE, ErrorCode.not_coordinator, ErrorCode.not_enough_replicas),
        (NEWER, ErrorCode.producer_fenced, ErrorCode.invalid_producer_epoch),
        (NEWER, ErrorCode.concurrent_transactions, ErrorCode.concurrent_transactions),
    ],
)
def test_what_it_refuses_is_not_appended(node, elsewhere, version, refusal, expected):
    elsewhere.refusal = refusal
    assert produce(node, version) is expected
    assert end_offset(node) == 0
    assert not node.partition(*ORDERS).transaction_guards


@pytest.mark.parametrize(
    ("version", "expected"),
    [(OLDER, ErrorCode.invalid_txn_state), (ABORTABLE, ErrorCode.transaction_abortable)],
)
def test_a_marker_that_comes_before_the_write_keeps_it_out(node, elsewhere, version, expected):
    elsewhere.meanwhile = marker_of(node, epoch=3)
    assert produce(node, version) is expected
    assert end_offset(node) == 1  # The marker.
    assert node.partition(*ORDERS).log.producers.first_undecided_offset is None


def test_the_marker_of_the_transaction_before_keeps_nothing_out(node, elsewhere):
    """A newer client begins its next transaction with the marker's epoch."""
    elsewhere.meanwhile = marker_of(node, epoch=3, version=2)
    assert produce(node, NEWER) is ErrorCode.none
    assert end_offset(node) == 2


def test_an_end_that_fences_keeps_a_newer_clients_write_out(node, elsewhere):
    elsewhere.meanwhile = marker_of(node, epoch=4, version=2)
    assert produce(node, NEWER) is not ErrorCode.none
    assert end_offset(node) == 1
    assert node.partition(*ORDERS).log.producers.first_undecided_offset is None


@pytest.mark.parametrize("version", [OLDER, ABORTABLE, NEWER])
def test_a_leader_that_resigns_and_comes_back_asks_anew(node, elsewhere, version):
    """The transaction stays open; the client is not told to abort it."""

    elsewhere.meanwhile = resignation_of(node, ORDERS)
    assert produce(node, version) is ErrorCode.not_leader_or_follower
    assert end_offset(node) == 0
    elsewhere.meanwhile = None
    assert produce(node, version) is ErrorCode.none


@pytest.mark.parametrize("version", [3, 4, 5])
def test_offsets_go_to_the_next_coordinator_when_theirs_resigns(node, elsewhere, version):
    find = FindCoordinatorRequest(key_type=0, coordinator_keys=("readers",))
    node.call(handle_find_coordinator, find)
    groups = node.broker.groups
    topic_partition = TopicPartition(groups.topic, groups.partition_of("readers"))
    node.run(until(lambda: groups.is_served(topic_partition.partition)))
    assert commit_offset(node, version) is ErrorCode.none
    elsewhere.meanwhile = resignation_of(node, topic_partition)
    with pytest.raises(ApiError) as caught:
        commit_offset(node, version)
    assert caught.value.code is ErrorCode.not_coordinator
