"""ExpireDelegationToken (40): v1-v2.

Changes when a token expires, or ends it at once (KIP-48).

v2  flexible
"""

from collections.abc import Awaitable

from kio.schema.expire_delegation_token.v2.request import ExpireDelegationTokenRequest
from kio.schema.expire_delegation_token.v2.response import ExpireDelegationTokenResponse

from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.delegation_tokens import require_login


def handle(
    broker: Broker, context: RequestContext, request: ExpireDelegationTokenRequest
) -> Awaitable[ExpireDelegationTokenResponse]:
    require_login(context)
    return broker.controller.call(request, caller=context.caller())
