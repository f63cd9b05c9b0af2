"""Asks the transaction coordinator on another broker whether partitions are in a transaction, or to
add them (AddPartitionsToTxn v5, KIP-890).

Questions about many transactions share one request. The coordinator lets them wait only briefly for
a transaction that is being completed, because the others wait with it; that one is asked again.
"""

import asyncio
from asyncio import Future
from collections.abc import Awaitable, Callable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple

from kio.schema.types import ProducerId, TopicName, TransactionalId
from kio.static.primitive import i16, i32

from ottla.controller.image import MetadataImage
from ottla.controller.records import NO_LEADER
from ottla.coordination.broker_queues import BrokerQueues
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TRANSACTION_STATE_TOPIC, TopicPartition
from ottla.runtime.supervisor import Supervisor

if TYPE_CHECKING:
    from kio.schema.add_partitions_to_txn.v5.request import (
        AddPartitionsToTxnRequest,
        AddPartitionsToTxnTransaction,
    )
    from kio.schema.add_partitions_to_txn.v5.response import (
        AddPartitionsToTxnResponse,
        AddPartitionsToTxnResult,
    )

# Delays between attempts while the previous transaction completes; then the producer is told.
RETRY_DELAYS_S: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.32)

# Sends a request to a broker; ApiError if no response came.
AskBroker = Callable[[int, "AddPartitionsToTxnRequest"], Awaitable["AddPartitionsToTxnResponse"]]

_Codes = dict[TopicPartition, ErrorCode]


class AskedTransaction(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int


class _Question(NamedTuple):
    transaction: AskedTransaction
    partitions: Sequence[TopicPartition]
    verify_only: bool
    answer: "Future[_Codes]"


class RemoteTransactions:
    def __init__(
        self,
        node_id: int,
        image: MetadataImage,
        partition_of: Callable[[str], int | None],
        ask: AskBroker,
        supervisor: Supervisor,
    ) -> None:
        """`partition_of` returns the partition of `__transaction_state` for an id."""
        self._node_id = node_id
        self._image = image
        self._partition_of = partition_of
        self._ask = ask
        self._loop = supervisor.loop
        self._queues = BrokerQueues("questions about transactions", self._send, supervisor)

    def is_elsewhere(self, transactional_id: str) -> bool:
        """Whether another broker coordinates it, as far as this one knows."""
        return self._leader(transactional_id) not in (NO_LEADER, self._node_id)

    async def verify(
        self, transaction: AskedTransaction, partitions: Sequence[TopicPartition]
    ) -> None:
        """ApiError unless all of them are in the open transaction."""
        await self._call(transaction, partitions, verify_only=True)

    async def add(
        self, transaction: AskedTransaction, partitions: Sequence[TopicPartition]
    ) -> None:
        """Add them to the open transaction; ApiError if that fails."""
        for delay_s in RETRY_DELAYS_S:
            try:
                return await self._call(transaction, partitions, verify_only=False)
            except ApiError as error:
                if error.code is not ErrorCode.concurrent_transactions:
                    raise
            await asyncio.sleep(delay_s)
        return await self._call(transaction, partitions, verify_only=False)

    def _leader(self, transactional_id: str) -> int:
        partition = self._partition_of(transactional_id)
        if partition is None:
            return NO_LEADER
        state = self._image.partition(TRANSACTION_STATE_TOPIC, partition)
        return NO_LEADER if state is None else state.leader

    async def _call(
        self,
        transaction: AskedTransaction,
        partitions: Sequence[TopicPartition],
        *,
        verify_only: bool,
    ) -> None:
        leader = self._leader(transaction.transactional_id)
        if leader == NO_LEADER:
            raise ApiError(ErrorCode.coordinator_not_available, "the coordinator has no leader now")
        answer: Future[_Codes] = self._loop.create_future()
        self._queues.add(leader, _Question(transaction, partitions, verify_only, answer))
        try:
            codes = await answer
        finally:
            del answer  # It may hold an exception whose traceback references this frame.
        refused = [code for code in codes.values() if code not in _NOT_REFUSED]
        if refused or any(topic_partition not in codes for topic_partition in partitions):
            raise ApiError(
                refused[0] if refused else ErrorCode.unknown_server_error,
                f"{', '.join(map(str, partitions))}: not in the open transaction of"
                f" {transaction.transactional_id}, as broker {leader} says",
            )

    async def _send(self, leader: int, questions: list[_Question]) -> None:
        from kio.schema.add_partitions_to_txn.v5.request import AddPartitionsToTxnRequest

        request = AddPartitionsToTxnRequest(
            transactions=tuple(_encode(question) for question in questions)
        )
        try:
            response = await self._ask(leader, request)
            if response.error_code is not ErrorCode.none:
                raise ApiError(response.error_code, f"broker {leader} refused to look it up")
        except ApiError as error:
            for question in questions:
                if not question.answer.done():
                    question.answer.set_exception(ApiError(error.code, error.message))
            return
        for question, result in zip_longest(questions, response.results_by_transaction):
            if question is not None and not question.answer.done():
                question.answer.set_result({} if result is None else _codes(result))


# What was not attempted failed because of another partition, whose code has the reason.
_NOT_REFUSED: Final = frozenset({ErrorCode.none, ErrorCode.operation_not_attempted})


def _encode(question: _Question) -> "AddPartitionsToTxnTransaction":
    from kio.schema.add_partitions_to_txn.v5.request import (
        AddPartitionsToTxnTopic,
        AddPartitionsToTxnTransaction,
    )

    topics: dict[str, list[i32]] = {}
    for topic, partition in question.partitions:
        topics.setdefault(topic, []).append(i32(partition))
    transaction = question.transaction
    return AddPartitionsToTxnTransaction(
        transactional_id=TransactionalId(transaction.transactional_id),
        producer_id=ProducerId(transaction.producer_id),
        producer_epoch=i16(transaction.producer_epoch),
        verify_only=question.verify_only,
        topics=tuple(
            AddPartitionsToTxnTopic(name=TopicName(name), partitions=tuple(indexes))
            for name, indexes in topics.items()
        ),
    )


def _codes(result: "AddPartitionsToTxnResult") -> _Codes:
    return {
        TopicPartition(topic.name, partition.partition_index): partition.partition_error_code
        for topic in result.topic_results
        for partition in topic.results_by_partition
    }
