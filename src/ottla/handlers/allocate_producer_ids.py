"""AllocateProducerIds (67): v0.

Allocates the next block of producer ids to a broker.
"""

from collections.abc import Awaitable

from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest
from kio.schema.allocate_producer_ids.v0.response import AllocateProducerIdsResponse

from ottla.handlers.broker import Broker, RequestContext


def handle(
    broker: Broker, _: RequestContext, request: AllocateProducerIdsRequest
) -> Awaitable[AllocateProducerIdsResponse]:
    return broker.controller.call(request)
