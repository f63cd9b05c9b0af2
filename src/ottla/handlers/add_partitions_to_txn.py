"""AddPartitionsToTxn (24): v0-v5.

Puts partitions into a producer's transaction before it writes to them. All of them are added, or
none.

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
from ottla.handlers.transaction_calls import COMPLETION_WAIT_S, call, fenced_code
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.protocol.topics import INTERNAL_TOPICS, TopicPartition
from ottla.security.acls import Operation, ResourceType
from ottla.transactions.transaction import EPOCH_PER_TRANSACTION_VERSION, Producer

_FENCED_SINCE = 2
_BY_BROKER_SINCE = 4
_ABORTABLE_SINCE = 5

# A broker asks about many transactions at once, none of which may hold up the others for long.
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
    return _response(ErrorCode.none, tuple(results))


def error_response(
    request: AddPartitionsToTxnRequest, error: ApiError
) -> AddPartitionsToTxnResponse:
    return _response(
        error.code,
        tuple(
            _describe(transaction, dict.fromkeys(_places(transaction), error.code))
            for transaction in request.transactions
        ),
    )


def _response(
    code: ErrorCode, results: tuple[AddPartitionsToTxnResult, ...]
) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(
        throttle_time=NO_THROTTLE, error_code=code, results_by_transaction=results
    )


async def _result(
    broker: Broker, context: RequestContext, transaction: AddPartitionsToTxnTransaction
) -> AddPartitionsToTxnResult:
    places = _places(transaction)
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
            codes = await _verify(broker, transaction, places)
        else:
            codes = await _add(broker, context, transaction, places)
    except ApiError as error:
        codes = dict.fromkeys(places, error.code)
    version = context.api_version
    return _describe(
        transaction, {place: _code_for(code, version) for place, code in codes.items()}
    )


def _places(transaction: AddPartitionsToTxnTransaction) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, partition)
        for topic in transaction.topics
        for partition in topic.partitions
    ]


async def _add(
    broker: Broker,
    context: RequestContext,
    transaction: AddPartitionsToTxnTransaction,
    places: list[TopicPartition],
) -> Codes:
    refused = {
        place: code for place in places if (code := _refusal(broker, context, place)) is not None
    }
    if refused:
        return {place: refused.get(place, ErrorCode.operation_not_attempted) for place in places}
    is_broker = context.api_version >= _BY_BROKER_SINCE
    await call(
        broker,
        transaction.transactional_id,
        lambda machine, now_ms, _: machine.add_partitions(
            transaction.transactional_id,
            _producer(transaction),
            places,
            now_ms,
            client_version=EPOCH_PER_TRANSACTION_VERSION if is_broker else 0,
        ),
        _BROKER_WAIT_S if is_broker else COMPLETION_WAIT_S,
    )
    return dict.fromkeys(places, ErrorCode.none)


def _refusal(broker: Broker, context: RequestContext, place: TopicPartition) -> ErrorCode | None:
    if context.api_version < _BY_BROKER_SINCE and not context.access.authorize(
        Operation.WRITE, ResourceType.TOPIC, place.topic
    ):
        return DENIED.code
    if broker.image.partition(*place) is None:
        return ErrorCode.unknown_topic_or_partition
    if place.topic in INTERNAL_TOPICS and place.topic != broker.groups.topic:
        return ErrorCode.invalid_topic_exception
    return None


async def _verify(
    broker: Broker, transaction: AddPartitionsToTxnTransaction, places: list[TopicPartition]
) -> Codes:
    return await broker.transactions.find(transaction.transactional_id).submit(
        lambda machine, _: machine.verify_partitions(
            transaction.transactional_id, _producer(transaction), places
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
