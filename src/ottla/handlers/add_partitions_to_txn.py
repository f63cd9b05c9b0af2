"""AddPartitionsToTxn (24): v0-v5.

Adds partitions to a producer's transaction before it writes to them, all or none.

v2  PRODUCER_FENCED (KIP-588)
v3  flexible
v4  from brokers: several transactions, and verification only (KIP-890)
v5  TRANSACTION_ABORTABLE for a partition that is not in the transaction
"""

import asyncio
from collections.abc import Mapping

from kio.schema.add_partitions_to_txn.v5.request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTransaction,
)
from kio.schema.add_partitions_to_txn.v5.response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)

from ottla.handlers.authorization import DENIED, may_act_as_node, not_a_node, require
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.refusals import refused
from ottla.handlers.transaction_calls import COMPLETION_WAIT_S, fenced_code
from ottla.handlers.transactional_writes import Write, add_to_transaction
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.protocol.topics import INTERNAL_TOPICS, TopicPartition
from ottla.security.acls import Operation, ResourceType
from ottla.transactions.transaction import EPOCH_PER_TRANSACTION_VERSION, Producer

_FENCED_SINCE = 2
_BY_BROKER_SINCE = 4
_ABORTABLE_SINCE = 5

# A broker asks about many transactions at once, none of which may delay the others for long.
_BROKER_WAIT_S = 0.05

Codes = Mapping[TopicPartition, ErrorCode]


async def handle(
    broker: Broker, context: RequestContext, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse:
    if context.api_version >= _BY_BROKER_SINCE and not may_act_as_node(broker, context.session):
        raise not_a_node(context.session)
    results = await asyncio.gather(
        *(_result(broker, context, transaction) for transaction in request.transactions)
    )
    return AddPartitionsToTxnResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        results_by_transaction=tuple(results),
    )


def error_response(
    request: AddPartitionsToTxnRequest, error: ApiError
) -> AddPartitionsToTxnResponse:
    results = tuple(
        _describe(transaction, dict.fromkeys(_topic_partitions(transaction), error.code))
        for transaction in request.transactions
    )
    return refused(AddPartitionsToTxnResponse, error, results_by_transaction=results)


async def _result(
    broker: Broker, context: RequestContext, transaction: AddPartitionsToTxnTransaction
) -> AddPartitionsToTxnResult:
    topic_partitions = _topic_partitions(transaction)
    is_client = context.api_version < _BY_BROKER_SINCE
    try:
        if is_client:
            require(
                context,
                Operation.WRITE,
                ResourceType.TRANSACTIONAL_ID,
                transaction.transactional_id,
            )
        if transaction.verify_only:
            codes = await _verify(broker, transaction, topic_partitions)
        else:
            codes = await _add(broker, context, transaction, topic_partitions)
    except ApiError as error:
        codes = dict.fromkeys(topic_partitions, error.code)
    version = context.api_version
    return _describe(
        transaction,
        {topic_partition: _code_for(code, version) for topic_partition, code in codes.items()},
    )


def _topic_partitions(transaction: AddPartitionsToTxnTransaction) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, partition)
        for topic in transaction.topics
        for partition in topic.partitions
    ]


async def _add(
    broker: Broker,
    context: RequestContext,
    transaction: AddPartitionsToTxnTransaction,
    topic_partitions: list[TopicPartition],
) -> Codes:
    refused = {
        topic_partition: code
        for topic_partition in topic_partitions
        if (code := _refusal(broker, context, topic_partition)) is not None
    }
    if refused:
        return {
            topic_partition: refused.get(topic_partition, ErrorCode.operation_not_attempted)
            for topic_partition in topic_partitions
        }
    is_broker = context.api_version >= _BY_BROKER_SINCE
    await add_to_transaction(
        broker,
        Write(transaction.transactional_id, _producer(transaction), tuple(topic_partitions)),
        client_version=EPOCH_PER_TRANSACTION_VERSION if is_broker else 0,
        wait_s=_BROKER_WAIT_S if is_broker else COMPLETION_WAIT_S,
    )
    return dict.fromkeys(topic_partitions, ErrorCode.none)


def _refusal(
    broker: Broker, context: RequestContext, topic_partition: TopicPartition
) -> ErrorCode | None:
    is_internal = topic_partition.topic in INTERNAL_TOPICS
    if context.api_version < _BY_BROKER_SINCE and (
        is_internal
        or not context.access.authorize(Operation.WRITE, ResourceType.TOPIC, topic_partition.topic)
    ):
        return DENIED.code
    if broker.image.partition(*topic_partition) is None:
        return ErrorCode.unknown_topic_or_partition
    if is_internal and topic_partition.topic != broker.groups.topic:
        return ErrorCode.invalid_topic_exception
    return None


async def _verify(
    broker: Broker,
    transaction: AddPartitionsToTxnTransaction,
    topic_partitions: list[TopicPartition],
) -> Codes:
    return await broker.transactions.coordinators.find(transaction.transactional_id).submit(
        lambda machine, _: machine.verify_partitions(
            transaction.transactional_id, _producer(transaction), topic_partitions
        )
    )


def _producer(transaction: AddPartitionsToTxnTransaction) -> Producer:
    return Producer(transaction.producer_id, transaction.producer_epoch)


def _code_for(code: ErrorCode, api_version: int) -> ErrorCode:
    if code is ErrorCode.transaction_abortable and api_version < _ABORTABLE_SINCE:
        return ErrorCode.invalid_txn_state
    return fenced_code(code, api_version, since=_FENCED_SINCE)


def _describe(transaction: AddPartitionsToTxnTransaction, codes: Codes) -> AddPartitionsToTxnResult:
    return AddPartitionsToTxnResult(
        transactional_id=transaction.transactional_id,
        topic_results=tuple(
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=tuple(
                    AddPartitionsToTxnPartitionResult(
                        partition_index=partition,
                        partition_error_code=codes[TopicPartition(topic.name, partition)],
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in transaction.topics
        ),
    )
