"""InitProducerId (22): v0-v5.

Gives a producer the id under which its retries are recognised. Transactional ids are refused.

v2  flexible
v3  the producer may name the id and epoch that it has (KIP-360)
"""

from collections.abc import Awaitable

from kio.schema.init_producer_id.v6.request import InitProducerIdRequest
from kio.schema.init_producer_id.v6.response import InitProducerIdResponse
from kio.schema.types import ProducerId
from kio.static.primitive import i16

from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE


def handle_init_producer_id(
    broker: Broker, _: RequestContext, request: InitProducerIdRequest
) -> Awaitable[InitProducerIdResponse]:
    if request.transactional_id is not None:
        # Clients take this code as final; after most others they would ask again for ever.
        raise ApiError(
            ErrorCode.transactional_id_authorization_failed,
            "transactions are not supported; use a producer without a transactional id",
        )
    return _give_id(broker)


async def _give_id(broker: Broker) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        producer_id=ProducerId(await broker.producer_ids.next_id()),
        producer_epoch=i16(0),
    )


def error_response(_: InitProducerIdRequest, error: ApiError) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        throttle_time=NO_THROTTLE, error_code=error.code, producer_epoch=i16(-1)
    )
