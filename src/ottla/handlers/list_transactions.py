"""ListTransactions (66): v0-v2.

The transactional ids that this broker coordinates; clients ask every broker (KIP-664).

v1  a filter by duration (KIP-994)
v2  a filter by transactional id, as a regular expression (KIP-1152)
"""

import asyncio
from collections.abc import Callable

from kio.schema.list_transactions.v2.request import ListTransactionsRequest
from kio.schema.list_transactions.v2.response import ListTransactionsResponse

from ottla.groups.consumer.regex import TopicPattern
from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation, ResourceType
from ottla.transactions.state import BY_NAME


async def handle(
    broker: Broker, context: RequestContext, request: ListTransactionsRequest
) -> ListTransactionsResponse:
    matches = _matcher(request.transactional_id_pattern)
    unknown = tuple(name for name in request.state_filters if name not in BY_NAME)
    listings = await asyncio.gather(
        *(
            runtime.submit(
                lambda machine, now_ms: machine.list_transactions(request, matches, now_ms)
            )
            for runtime in broker.transactions.coordinators.all()
        )
    )
    return ListTransactionsResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        unknown_state_filters=unknown,
        transaction_states=tuple(
            state
            for listing in listings
            for state in listing
            if context.access.may(
                Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, state.transactional_id
            )
        ),
    )


def _matcher(pattern: str | None) -> Callable[[str], bool]:
    if not pattern:
        return lambda _: True
    return TopicPattern(pattern).matches
