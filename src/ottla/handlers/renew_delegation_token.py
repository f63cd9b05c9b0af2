"""RenewDelegationToken (39): v1-v2.

Extends the lifetime of a token (KIP-48).

v2  flexible
"""

from collections.abc import Awaitable

from kio.schema.renew_delegation_token.v2.request import RenewDelegationTokenRequest
from kio.schema.renew_delegation_token.v2.response import RenewDelegationTokenResponse

from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.delegation_tokens import require_login


def handle(
    broker: Broker, context: RequestContext, request: RenewDelegationTokenRequest
) -> Awaitable[RenewDelegationTokenResponse]:
    require_login(context)
    return broker.controller.call(request, caller=context.caller())
