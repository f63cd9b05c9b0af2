"""Broker 1 asks; broker 2 coordinates every transactional id, until a test changes that."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

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
from kio.schema.types import ProducerId, TopicName, TransactionalId
from kio.static.primitive import i16, i32
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


# The broker, the request and its response.
Asked = tuple[int, AddPartitionsToTxnRequest, asyncio.Future[AddPartitionsToTxnResponse]]


class Kit(ManagerKit):
    def __init__(self) -> None:
        super().__init__()
        self.create(TRANSACTION_STATE_TOPIC, leader=2)
        self.requests: asyncio.Queue[Asked] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        self.supervisor = Supervisor(loop, print)
        self.remote = RemoteTransactions(1, self.image, lambda _: 0, self._ask, self.supervisor)

    async def _ask(
        self, broker_id: int, request: AddPartitionsToTxnRequest
    ) -> AddPartitionsToTxnResponse:
        answer: asyncio.Future[AddPartitionsToTxnResponse] = asyncio.Future()
        self.requests.put_nowait((broker_id, request, answer))
        return await answer

    def verify(
        self, transaction: AskedTransaction, *topic_partitions: TopicPartition
    ) -> asyncio.Task[Any]:
        return asyncio.ensure_future(self.remote.verify(transaction, topic_partitions))

    def add(
        self, transaction: AskedTransaction, *topic_partitions: TopicPartition
    ) -> asyncio.Task[Any]:
        return asyncio.ensure_future(self.remote.add(transaction, topic_partitions))


def asked(
    transaction: AskedTransaction, *partitions: int, verify_only: bool = True
) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=TransactionalId(transaction.transactional_id),
        producer_id=ProducerId(transaction.producer_id),
        producer_epoch=i16(transaction.producer_epoch),
        verify_only=verify_only,
        topics=(
            AddPartitionsToTxnTopic(
                name=TopicName("orders"), partitions=tuple(map(i32, partitions))
            ),
        ),
    )


def result(transaction: AskedTransaction, *codes: ErrorCode) -> AddPartitionsToTxnResult:
    return AddPartitionsToTxnResult(
        transactional_id=TransactionalId(transaction.transactional_id),
        topic_results=(
            AddPartitionsToTxnTopicResult(
                name=TopicName("orders"),
                results_by_partition=tuple(
                    AddPartitionsToTxnPartitionResult(
                        partition_index=i32(index), partition_error_code=code
                    )
                    for index, code in enumerate(codes)
                ),
            ),
        ),
    )


def response(
    *results: AddPartitionsToTxnResult, code: ErrorCode = ErrorCode.none
) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(
        throttle_time=NO_THROTTLE, error_code=code, results_by_transaction=results
    )


def run(test: Callable[[Kit], Awaitable[None]]) -> None:
    async def whole() -> None:
        kit = Kit()
        await test(kit)
        await kit.supervisor.stop()

    asyncio.run(whole())


async def code_of(call: asyncio.Task[Any]) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        await call
    return refused.value.code


def test_questions_that_come_together_go_in_one_request() -> None:
    async def test(kit: Kit) -> None:
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


def test_the_partition_that_is_refused_says_why_the_others_were_not_tried() -> None:
    async def test(kit: Kit) -> None:
        call = kit.add(PAYMENTS, ORDERS_0, ORDERS_1)
        _, _, answer = await kit.requests.get()
        codes = (ErrorCode.operation_not_attempted, ErrorCode.unknown_topic_or_partition)
        answer.set_result(response(result(PAYMENTS, *codes)))
        assert await code_of(call) is ErrorCode.unknown_topic_or_partition

    run(test)


@pytest.mark.parametrize("results", [(), (result(PAYMENTS),)])
def test_what_is_not_answered_is_not_in_the_transaction(
    results: tuple[AddPartitionsToTxnResult, ...],
) -> None:
    async def test(kit: Kit) -> None:
        call = kit.verify(PAYMENTS, ORDERS_0)
        _, _, answer = await kit.requests.get()
        answer.set_result(response(*results))
        assert await code_of(call) is ErrorCode.unknown_server_error

    run(test)


def test_a_request_that_is_refused_or_lost_answers_all_of_its_questions() -> None:
    async def test(kit: Kit) -> None:
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


def test_a_transaction_that_is_being_completed_is_asked_about_again_wherever_it_is_then() -> None:
    async def test(kit: Kit) -> None:
        call = kit.add(PAYMENTS, ORDERS_0)
        _, _, answer = await kit.requests.get()
        kit.change(TRANSACTION_STATE_TOPIC, leader=3)
        answer.set_result(response(result(PAYMENTS, ErrorCode.concurrent_transactions)))
        broker_id, _, answer = await kit.requests.get()
        assert broker_id == 3
        answer.set_result(response(result(PAYMENTS, ErrorCode.none)))
        await call

    run(test)


def test_in_the_end_the_producer_is_told_that_it_is_still_being_completed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ottla.coordination.remote_transactions.RETRY_DELAYS_S", (0.0, 0.0))

    async def test(kit: Kit) -> None:
        call = kit.add(PAYMENTS, ORDERS_0)
        for _ in range(3):
            _, _, answer = await kit.requests.get()
            answer.set_result(response(result(PAYMENTS, ErrorCode.concurrent_transactions)))
        assert await code_of(call) is ErrorCode.concurrent_transactions

    run(test)
    assert 0.5 < sum(RETRY_DELAYS_S) < 2  # Shorter than clients wait for a response.


def test_who_coordinates() -> None:
    async def test(kit: Kit) -> None:
        assert kit.remote.is_elsewhere("payments")
        kit.change(TRANSACTION_STATE_TOPIC, leader=1)
        assert not kit.remote.is_elsewhere("payments")
        kit.change(TRANSACTION_STATE_TOPIC, leader=NO_LEADER)
        assert not kit.remote.is_elsewhere("payments")
        assert await code_of(kit.verify(PAYMENTS, ORDERS_0)) is ErrorCode.coordinator_not_available

    run(test)
