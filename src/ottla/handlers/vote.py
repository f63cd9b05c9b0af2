"""Vote (52): v0-v2.

A replica asks for a vote in the election of the metadata quorum's leader.

v1  directory ids (KIP-853)
v2  pre-vote (KIP-996)
"""

from collections.abc import Awaitable

from kio.schema.vote.v2.request import VoteRequest

from ottla.handlers.broker import Broker, RequestContext


def handle(broker: Broker, _: RequestContext, request: VoteRequest) -> Awaitable[object]:
    return broker.quorum.handle(request)
