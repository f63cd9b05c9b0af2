"""DescribeTransactions (65): v0.

The state of transactional ids that this broker coordinates (KIP-664).
"""

from kio.schema.describe_transactions.v0.request import DescribeTransactionsRequest
from kio.schema.describe_transactions.v0.response import (
    DescribeTransactionsResponse,
    TransactionState,
)

from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.group_calls import call_each
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE
from ottla.transactions.views import describe_missing


async def handle(
    broker: Broker, _: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    described = await call_each(
        request.transactional_ids,
        lambda transactional_id: broker.transactions.find(transactional_id).submit(
            lambda machine, _: machine.describe(transactional_id)
        ),
        _failed,
    )
    return _response(tuple(described))


def error_response(
    request: DescribeTransactionsRequest, error: ApiError
) -> DescribeTransactionsResponse:
    return _response(
        tuple(_failed(transactional_id, error) for transactional_id in request.transactional_ids)
    )


def _failed(transactional_id: str, error: ApiError) -> TransactionState:
    return describe_missing(transactional_id, error.code)


def _response(states: tuple[TransactionState, ...]) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(throttle_time=NO_THROTTLE, transaction_states=states)
