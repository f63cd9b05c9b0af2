"""Vote (52): v0-v2.

A replica asks to be elected as the leader of the metadata quorum.

v1  directory ids (KIP-853)
v2  pre-vote (KIP-996)
"""

from collections.abc import Awaitable

from kio.schema.vote.v2.request import VoteRequest
from kio.schema.vote.v2.response import VoteResponse

from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError


def handle(broker: Broker, _: RequestContext, request: VoteRequest) -> Awaitable[object]:
    return broker.quorum.handle(request)


def error_response(_: VoteRequest, error: ApiError) -> VoteResponse:
    return VoteResponse(error_code=error.code, topics=())
