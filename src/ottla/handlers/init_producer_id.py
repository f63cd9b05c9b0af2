"""InitProducerId (22): v0-v6.

Assigns a producer the id by which its retries are recognized. With a transactional id, it also
fences the previous producer, and ends what it left open.

v2  flexible
v3  the producer may name the id and epoch that it has (KIP-360)
v4  PRODUCER_FENCED (KIP-588)
v6  two-phase commit (KIP-939)
"""

from collections.abc import Awaitable
from dataclasses import replace

from kio.schema.init_producer_id.v6.request import InitProducerIdRequest
from kio.schema.init_producer_id.v6.response import InitProducerIdResponse
from kio.schema.types import ProducerId
from kio.static.primitive import i16

from ottla.handlers.authorization import require, require_cluster
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.refusals import refused
from ottla.handlers.transaction_calls import COMPLETION_WAIT_S, call, fenced_code
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import CLUSTER_NAME, Operation, ResourceType

_FENCED_SINCE = 4


def handle(
    broker: Broker, context: RequestContext, request: InitProducerIdRequest
) -> Awaitable[InitProducerIdResponse]:
    _authorize(context, request)
    if request.transactional_id is None:
        return _give_id(broker)
    return _init(broker, context, request, request.transactional_id)


def _authorize(context: RequestContext, request: InitProducerIdRequest) -> None:
    """A client that may write to any topic may do so idempotently."""
    access, transactional_id = context.access, request.transactional_id
    if transactional_id is not None:
        require(context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        if request.enable2_pc:
            require(
                context,
                Operation.TWO_PHASE_COMMIT,
                ResourceType.TRANSACTIONAL_ID,
                transactional_id,
            )
    elif not access.may(
        Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME
    ) and not access.may_any(Operation.WRITE, ResourceType.TOPIC):
        require_cluster(context, Operation.IDEMPOTENT_WRITE)


def error_response(_: InitProducerIdRequest, error: ApiError) -> InitProducerIdResponse:
    return refused(InitProducerIdResponse, error, producer_epoch=i16(-1))


async def _give_id(broker: Broker) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        producer_id=ProducerId(await broker.producer_ids.next_id()),
        producer_epoch=i16(0),
    )


async def _init(
    broker: Broker,
    context: RequestContext,
    request: InitProducerIdRequest,
    transactional_id: str,
) -> InitProducerIdResponse:
    try:
        response = await _ask(broker, transactional_id, request)
        if response.error_code is ErrorCode.concurrent_transactions:
            # This request is aborting what was open.
            await broker.transactions.completion.wait(transactional_id, COMPLETION_WAIT_S)
            response = await _ask(broker, transactional_id, request)
    except ApiError as error:
        response = error_response(request, error)
    code = fenced_code(response.error_code, context.api_version, since=_FENCED_SINCE)
    return replace(response, error_code=code)


async def _ask(
    broker: Broker, transactional_id: str, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    return await call(
        broker,
        transactional_id,
        lambda machine, now_ms, new_id: machine.init_producer_id(request, now_ms, new_id),
    )
