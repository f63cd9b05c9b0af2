"""EndTxn (26): v0-v5.

Commits or aborts a transaction. Answered once the decision is durable; the markers follow.

v2  PRODUCER_FENCED (KIP-588)
v3  flexible
v4  TRANSACTION_ABORTABLE (KIP-890)
v5  every end raises the producer's epoch; the new one is in the response (KIP-890)
"""

from kio.schema.end_txn.v5.request import EndTxnRequest
from kio.schema.end_txn.v5.response import EndTxnResponse

from ottla.handlers.authorization import require
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.transaction_calls import call_once, fenced_code
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation, ResourceType
from ottla.transactions.transaction import EPOCH_PER_TRANSACTION_VERSION

_FENCED_SINCE = 2
_EPOCH_PER_TRANSACTION_SINCE = 5


async def handle(broker: Broker, context: RequestContext, request: EndTxnRequest) -> EndTxnResponse:
    require(context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    raises_epoch = context.api_version >= _EPOCH_PER_TRANSACTION_SINCE
    try:
        return await call_once(
            broker,
            request.transactional_id,
            lambda machine, now_ms, new_id: machine.end_txn(
                request,
                now_ms,
                client_version=EPOCH_PER_TRANSACTION_VERSION if raises_epoch else 0,
                new_producer_id=new_id,
            ),
        )
    except ApiError as error:
        code = fenced_code(error.code, context.api_version, since=_FENCED_SINCE)
        return EndTxnResponse(throttle_time=NO_THROTTLE, error_code=code)
