"""EndQuorumEpoch (54): v0-v1.

The leader of the metadata quorum resigns, and says who should follow it.

v1  directory ids and endpoints (KIP-853)
"""

from collections.abc import Awaitable

from kio.schema.end_quorum_epoch.v1.request import EndQuorumEpochRequest
from kio.schema.end_quorum_epoch.v1.response import EndQuorumEpochResponse

from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError


def handle(broker: Broker, _: RequestContext, request: EndQuorumEpochRequest) -> Awaitable[object]:
    return broker.quorum.handle(request)


def error_response(_: EndQuorumEpochRequest, error: ApiError) -> EndQuorumEpochResponse:
    return EndQuorumEpochResponse(error_code=error.code, topics=())
