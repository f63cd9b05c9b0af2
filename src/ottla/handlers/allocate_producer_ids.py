"""AllocateProducerIds (67): v0.

A broker gets the next block of producer ids.
"""

from collections.abc import Awaitable

from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest
from kio.schema.allocate_producer_ids.v0.response import AllocateProducerIdsResponse
from kio.schema.types import ProducerId
from kio.static.primitive import i32

from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE


def handle(
    broker: Broker, _: RequestContext, request: AllocateProducerIdsRequest
) -> Awaitable[AllocateProducerIdsResponse]:
    return broker.controller.call(request)


def error_response(_: AllocateProducerIdsRequest, error: ApiError) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(
        throttle_time=NO_THROTTLE,
        error_code=error.code,
        producer_id_start=ProducerId(0),
        producer_id_len=i32(0),
    )
