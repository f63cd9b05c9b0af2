"""DescribeTransactions and ListTransactions."""

import datetime as dt
from collections.abc import Callable
from typing import cast

from kio.schema.describe_transactions.v0.response import TopicData
from kio.schema.describe_transactions.v0.response import TransactionState as DescribedTransaction
from kio.schema.list_transactions.v2.request import ListTransactionsRequest
from kio.schema.list_transactions.v2.response import TransactionState as ListedTransaction
from kio.schema.types import ProducerId, TopicName, TransactionalId
from kio.static.primitive import TZAware, i16, i32

from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import milliseconds
from ottla.transactions.store import TransactionStore
from ottla.transactions.transaction import Transaction

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def describe(store: TransactionStore, transactional_id: str) -> DescribedTransaction:
    if not transactional_id:
        return describe_missing(transactional_id, ErrorCode.invalid_request)
    transaction = store.get(transactional_id)
    if transaction is None:
        return describe_missing(transactional_id, ErrorCode.transactional_id_not_found)
    return DescribedTransaction(
        error_code=ErrorCode.none,
        transactional_id=TransactionalId(transactional_id),
        transaction_state=transaction.state.kafka_name,
        transaction_timeout=milliseconds(transaction.timeout_ms),
        transaction_start_time=_time(transaction.started_ms),
        producer_id=ProducerId(transaction.producer_id),
        producer_epoch=i16(transaction.producer_epoch),
        topics=_topics(transaction),
    )


def describe_missing(transactional_id: str, code: ErrorCode) -> DescribedTransaction:
    return DescribedTransaction(
        error_code=code,
        transactional_id=TransactionalId(transactional_id),
        transaction_state="",
        transaction_timeout=milliseconds(0),
        transaction_start_time=_time(0),
        producer_id=ProducerId(0),
        producer_epoch=i16(0),
        topics=(),
    )


def list_transactions(
    store: TransactionStore,
    request: ListTransactionsRequest,
    matches: Callable[[str], bool],
    now_ms: int,
) -> tuple[ListedTransaction, ...]:
    """The transactions that pass every filter; an empty filter accepts everything."""
    states = set(request.state_filters)
    producer_ids = set(request.producer_id_filters)
    return tuple(
        ListedTransaction(
            transactional_id=TransactionalId(transactional_id),
            producer_id=ProducerId(transaction.producer_id),
            transaction_state=transaction.state.kafka_name,
        )
        for transactional_id, transaction in store
        if (not states or transaction.state.kafka_name in states)
        and (not producer_ids or transaction.producer_id in producer_ids)
        and _runs_longer(transaction, request.duration_filter, now_ms)
        and matches(transactional_id)
    )


def _runs_longer(transaction: Transaction, duration_ms: int, now_ms: int) -> bool:
    if duration_ms < 0:
        return True
    return transaction.started_ms >= 0 and now_ms - transaction.started_ms > duration_ms


def _topics(transaction: Transaction) -> tuple[TopicData, ...]:
    topics: dict[str, list[i32]] = {}
    for topic, partition in sorted(transaction.partitions):
        topics.setdefault(topic, []).append(i32(partition))
    return tuple(
        TopicData(topic=TopicName(topic), partitions=tuple(partitions))
        for topic, partitions in topics.items()
    )


def _time(time_ms: int) -> TZAware:
    """-1, which stands for no time, is out of range for the type."""
    return cast("TZAware", _EPOCH + dt.timedelta(milliseconds=time_ms))
