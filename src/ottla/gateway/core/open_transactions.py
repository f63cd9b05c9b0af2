"""Transactional ids and the state of each transaction."""

import datetime as dt
from typing import Any, Final, NamedTuple

from kio.schema.describe_transactions.v0.request import DescribeTransactionsRequest
from kio.schema.list_transactions.v2.request import ListTransactionsRequest
from kio.schema.types import TransactionalId

from ottla.client.async_wire.cluster import Cluster
from ottla.client.async_wire.transactions import init_transactions
from ottla.client.wire.cluster import CoordinatorType, TopicPartition, expect_one
from ottla.client.wire.errors import BrokerError, validate_answer
from ottla.client.wire.transactions import ONGOING
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import in_milliseconds

_NEVER_MS: Final = 2**31 - 1  # The timeout of a two-phase transaction.
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Transaction(NamedTuple):
    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


class TransactionDescription(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int | None  # None: never times out.
    started_ms: int | None
    partitions: tuple[TopicPartition, ...]


class OpenTransactions:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def all(self) -> list[Transaction]:
        async def ask() -> list[Transaction]:
            found = []
            for node_id, broker in (await self._cluster.every_broker()).items():
                response = await broker.call(ListTransactionsRequest())
                validate_answer(response.error_code, "the transactions")
                found += [
                    Transaction(
                        each.transactional_id, node_id, each.producer_id, each.transaction_state
                    )
                    for each in response.transaction_states
                ]
            return found

        return sorted(await self._cluster.retry(ask))

    async def describe(self, transactional_id: str) -> TransactionDescription:
        """Raises TRANSACTIONAL_ID_NOT_FOUND if there is none of that name."""
        request = DescribeTransactionsRequest(
            transactional_ids=(TransactionalId(transactional_id),)
        )

        async def ask() -> Any:
            coordinator = await self._cluster.coordinator(
                CoordinatorType.TRANSACTION, transactional_id
            )
            response = await coordinator.call(request)
            found = expect_one(response.transaction_states)
            validate_answer(found.error_code, f"transactional id {transactional_id}")
            return found

        found = await self._cluster.retry(ask)
        timeout_ms = in_milliseconds(found.transaction_timeout)
        started = found.transaction_start_time
        return TransactionDescription(
            found.transactional_id,
            found.producer_id,
            found.producer_epoch,
            found.transaction_state,
            timeout_ms if timeout_ms < _NEVER_MS else None,
            int(started.timestamp() * 1000) if started >= _EPOCH else None,
            tuple(
                TopicPartition(topic.topic, partition)
                for topic in found.topics
                for partition in topic.partitions
            ),
        )

    async def abort(self, transactional_id: str) -> None:
        """Abort as a new producer with this id would, fencing the old one.

        Raises INVALID_TXN_STATE if no transaction is open.
        """
        if (await self.describe(transactional_id)).state != ONGOING:
            raise BrokerError(
                ErrorCode.invalid_txn_state, f"{transactional_id} has no open transaction"
            )
        await init_transactions(self._cluster, transactional_id, 1)
