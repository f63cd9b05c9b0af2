"""Broker 1 asks; broker 2 coordinates every transactional id, until it is told otherwise."""

import asyncio

import pytest
from kio.schema.add_partitions_to_txn.v5.request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kio.schema.add_partitions_to_txn.v5.response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from tests.replication.manager_kit import ManagerKit

from ottla.controller.records import NO_LEADER
from ottla.coordination.remote_transactions import (
    RETRY_DELAYS_S,
    AskedTransaction,
    RemoteTransactions,
)
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.protocol.topics import TRANSACTION_STATE_TOPIC, TopicPartition
from ottla.runtime.supervisor import Supervisor

PAYMENTS = AskedTransaction("payments", 7, 1)
REFUNDS = AskedTransaction("refunds", 8, 0)
ORDERS_0, ORDERS_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


class Kit(ManagerKit):
    def __init__(self):
        super().__init__()
        self.create(TRANSACTION_STATE_TOPIC, leader=2)
        self.requests = asyncio.Queue()
        loop = asyncio.get_running_loop()
        self.supervisor = Supervisor(loop, print)
        self.remote = RemoteTransactions(
            1, self.image, lambda _: 0, self._ask, self.supervisor, loop
        )

    async def _ask(self, broker_id, request):
        answer = asyncio.get_running_loop().create_future()
        self.requests.put_nowait((broker_id, request, answer))
        return await answer

    def verify(self, transaction, *topic_partitions):
        return asyncio.ensure_future(self.remote.verify(transaction, topic_partitions))

    def add(self, transaction, *topic_partitions):
        return asyncio.ensure_future(self.remote.add(transaction, topic_partitions))


def asked(transaction, *partitions, verify_only=True):
    return AddPartitionsToTxnTransaction(
        transactional_id=transaction.transactional_id,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        verify_only=verify_only,
        topics=(AddPartitionsToTxnTopic(name="orders", partitions=partitions),),
    )


def result(transaction, *codes):
    return AddPartitionsToTxnResult(
        transactional_id=transaction.transactional_id,
        topic_results=(
            AddPartitionsToTxnTopicResult(
                name="orders",
                results_by_partition=tuple(
                    AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=code
                    )
                    for index, code in enumerate(codes)
                ),
            ),
        ),
    )


def response(*results, code=ErrorCode.none):
    return AddPartitionsToTxnResponse(
        throttle_time=NO_THROTTLE, error_code=code, results_by_transaction=results
    )


def run(test):
    async def whole():
        kit = Kit()
        await test(kit)
        await kit.supervisor.stop()

    asyncio.run(whole())


async def code_of(call):
    with pytest.raises(ApiError) as refused:
        await call
    return refused.value.code


def test_questions_that_come_together_go_in_one_request():
    async def test(kit):
        first, second = kit.verify(PAYMENTS, ORDERS_0, ORDERS_1), kit.add(REFUNDS, ORDERS_0)
        broker_id, request, answer = await kit.requests.get()
        assert broker_id == 2
        assert request == AddPartitionsToTxnRequest(
            transactions=(asked(PAYMENTS, 0, 1), asked(REFUNDS, 0, verify_only=False))
        )
        third = kit.verify(REFUNDS, ORDERS_0)
        answer.set_result(
            response(
                result(PAYMENTS, ErrorCode.none, ErrorCode.transaction_abortable),
                result(REFUNDS, ErrorCode.none),
            )
        )
        assert await code_of(first) is ErrorCode.transaction_abortable
        await second
        _, request, answer = await kit.requests.get()
        assert request == AddPartitionsToTxnRequest(transactions=(asked(REFUNDS, 0),))
        answer.set_result(response(result(REFUNDS, ErrorCode.none)))
        await third

    run(test)


def test_the_partition_that_is_refused_says_why_the_others_were_not_tried():
    async def test(kit):
        call = kit.add(PAYMENTS, ORDERS_0, ORDERS_1)
        _, _, answer = await kit.requests.get()
        codes = (ErrorCode.operation_not_attempted, ErrorCode.unknown_topic_or_partition)
        answer.set_result(response(result(PAYMENTS, *codes)))
        assert await code_of(call) is ErrorCode.unknown_topic_or_partition

    run(test)


@pytest.mark.parametrize("results", [(), (result(PAYMENTS),)])
def test_what_is_not_answered_is_not_in_the_transaction(results):
    async def test(kit):
        call = kit.verify(PAYMENTS, ORDERS_0)
        _, _, answer = await kit.requests.get()
        answer.set_result(response(*results))
        assert await code_of(call) is ErrorCode.unknown_server_error

    run(test)


def test_a_request_that_is_refused_or_lost_answers_all_of_its_questions():
    async def test(kit):
        calls = [kit.verify(PAYMENTS, ORDERS_0), kit.verify(REFUNDS, ORDERS_0)]
        _, _, answer = await kit.requests.get()
        answer.set_result(response(code=ErrorCode.cluster_authorization_failed))
        for call in calls:
            assert await code_of(call) is ErrorCode.cluster_authorization_failed
        call = kit.verify(PAYMENTS, ORDERS_0)
        _, _, answer = await kit.requests.get()
        answer.set_exception(ApiError(ErrorCode.coordinator_not_available))
        assert await code_of(call) is ErrorCode.coordinator_not_available

    run(test)


def test_a_transaction_that_is_being_completed_is_asked_about_again_wherever_it_is_then():
    async def test(kit):
        call = kit.add(PAYMENTS, ORDERS_0)
        _, _, answer = await kit.requests.get()
        kit.change(TRANSACTION_STATE_TOPIC, leader=3)
        answer.set_result(response(result(PAYMENTS, ErrorCode.concurrent_transactions)))
        broker_id, _, answer = await kit.requests.get()
        assert broker_id == 3
        answer.set_result(response(result(PAYMENTS, ErrorCode.none)))
        await call

    run(test)


def test_in_the_end_the_producer_is_told_that_it_is_still_being_completed(monkeypatch):
    monkeypatch.setattr("ottla.coordination.remote_transactions.RETRY_DELAYS_S", (0.0, 0.0))

    async def test(kit):
        call = kit.add(PAYMENTS, ORDERS_0)
        for _ in range(3):
            _, _, answer = await kit.requests.get()
            answer.set_result(response(result(PAYMENTS, ErrorCode.concurrent_transactions)))
        assert await code_of(call) is ErrorCode.concurrent_transactions

    run(test)
    assert 0.5 < sum(RETRY_DELAYS_S) < 2  # Shorter than clients wait for an answer.


def test_who_coordinates():
    async def test(kit):
        assert kit.remote.is_elsewhere("payments")
        kit.change(TRANSACTION_STATE_TOPIC, leader=1)
        assert not kit.remote.is_elsewhere("payments")
        kit.change(TRANSACTION_STATE_TOPIC, leader=NO_LEADER)
        assert not kit.remote.is_elsewhere("payments")
        assert await code_of(kit.verify(PAYMENTS, ORDERS_0)) is ErrorCode.coordinator_not_available

    run(test)
