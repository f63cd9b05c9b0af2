"""CreateDelegationToken (38): v1-v3.

Creates a token for logging in without a password (KIP-48).

v2  flexible
v3  tokens for other users (KIP-373)
"""

from collections.abc import Awaitable

from kio.schema.create_delegation_token.v3.request import CreateDelegationTokenRequest
from kio.schema.create_delegation_token.v3.response import CreateDelegationTokenResponse

from ottla.controller.tokens import created_response, token_owner
from ottla.handlers.authorization import require
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.delegation_tokens import require_login
from ottla.protocol.errors import ApiError
from ottla.security.acls import Operation, ResourceType


def handle(
    broker: Broker, context: RequestContext, request: CreateDelegationTokenRequest
) -> Awaitable[CreateDelegationTokenResponse]:
    require_login(context)
    caller = context.caller()
    owner = token_owner(request, caller.principal)
    if owner != caller.principal:
        require(context, Operation.CREATE_TOKENS, ResourceType.USER, str(owner))
    return broker.controller.call(request, caller=caller)


def error_response(
    _: CreateDelegationTokenRequest, error: ApiError
) -> CreateDelegationTokenResponse:
    return created_response(error.code)
