"""RenewDelegationToken (39): v1-v2.

Lets a token live on (KIP-48).

v2  flexible
"""

from collections.abc import Awaitable

from kio.schema.renew_delegation_token.v2.request import RenewDelegationTokenRequest
from kio.schema.renew_delegation_token.v2.response import RenewDelegationTokenResponse

from ottla.controller.tokens import NO_TIME_MS, timestamp
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.delegation_tokens import require_login
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE


def handle(
    broker: Broker, context: RequestContext, request: RenewDelegationTokenRequest
) -> Awaitable[RenewDelegationTokenResponse]:
    require_login(context)
    return broker.controller.call(request, caller=context.caller())


def error_response(_: RenewDelegationTokenRequest, error: ApiError) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(
        error_code=error.code, expiry_timestamp=timestamp(NO_TIME_MS), throttle_time=NO_THROTTLE
    )
