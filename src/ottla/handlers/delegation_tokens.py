"""What the delegation token APIs have in common."""

from collections.abc import Awaitable

from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.security.principal import ANONYMOUS


def require_login(context: RequestContext) -> None:
    """A token is for an authenticated client, not for one that logged in with another token."""
    caller = context.caller()
    if caller.by_token or caller.principal == ANONYMOUS:
        raise ApiError(
            ErrorCode.delegation_token_request_not_allowed,
            "Delegation tokens need a login by SASL or a certificate, not by a token.",
        )


def change_token(broker: Broker, context: RequestContext, request: object) -> Awaitable[object]:
    require_login(context)
    return broker.controller.call(request, caller=context.caller())
