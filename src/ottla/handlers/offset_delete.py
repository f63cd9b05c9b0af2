"""OffsetDelete (47): v0.

Removes the offsets of a group for topics that none of its members subscribes to (KIP-496).
"""

from collections.abc import Awaitable

from kio.schema.offset_delete.v0.request import OffsetDeleteRequest
from kio.schema.offset_delete.v0.response import OffsetDeleteResponse

from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.group_calls import call
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE


def handle(
    broker: Broker, _: RequestContext, request: OffsetDeleteRequest
) -> OffsetDeleteResponse | Awaitable[OffsetDeleteResponse]:
    return call(broker, request.group_id, lambda machine, _: machine.delete_offsets(request))


def error_response(_: OffsetDeleteRequest, error: ApiError) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error.code, throttle_time=NO_THROTTLE, topics=())
