"""DescribeTransactions (65): v0.

The state of transactional ids that this broker coordinates (KIP-664).
"""

from asyncio import Future
from dataclasses import replace

from kio.schema.describe_transactions.v0.request import DescribeTransactionsRequest
from kio.schema.describe_transactions.v0.response import (
    DescribeTransactionsResponse,
    TransactionState,
)
from kio.schema.types import TransactionalId

from ottla.handlers.authorization import require, split_topics
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.group_calls import call_each
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation, ResourceType
from ottla.transactions.views import describe_missing


async def handle(
    broker: Broker, context: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    def begin(transactional_id: TransactionalId) -> "Future[TransactionState]":
        require(context, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        return broker.transactions.coordinators.find(transactional_id).submit(
            lambda machine, _: machine.describe(transactional_id)
        )

    described = await call_each(request.transactional_ids, begin, _failed)
    shown = tuple(_shown(context, state) for state in described)
    return DescribeTransactionsResponse(throttle_time=NO_THROTTLE, transaction_states=shown)


def _shown(context: RequestContext, state: TransactionState) -> TransactionState:
    """Without topics that the client may not describe."""
    allowed, denied = split_topics(
        context, Operation.DESCRIBE, state.topics, lambda topic: topic.topic
    )
    return replace(state, topics=tuple(allowed)) if denied else state


def error_response(
    request: DescribeTransactionsRequest, error: ApiError
) -> DescribeTransactionsResponse:
    failed = tuple(_failed(each, error) for each in request.transactional_ids)
    return DescribeTransactionsResponse(throttle_time=NO_THROTTLE, transaction_states=failed)


def _failed(transactional_id: str, error: ApiError) -> TransactionState:
    return describe_missing(transactional_id, error.code)
