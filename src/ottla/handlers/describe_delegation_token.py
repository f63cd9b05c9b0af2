"""DescribeDelegationToken (41): v1-v3.

Lists tokens, with their credentials: those that the client owns, requested or may renew, and others
with DESCRIBE on the token or DESCRIBE_TOKENS on its owner.

v2  flexible
v3  who asked for a token (KIP-373)
"""

from collections.abc import Sequence

from kio.schema.describe_delegation_token.v3.request import DescribeDelegationTokenRequest
from kio.schema.describe_delegation_token.v3.response import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenResponse,
)
from kio.static.primitive import i64

from ottla.controller.token_config import DELEGATION_TOKEN_SECRET_KEY
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.delegation_tokens import require_login
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation, ResourceType
from ottla.security.delegation_tokens import DelegationToken, TokenSecret
from ottla.security.principal import Principal


def handle(
    broker: Broker, context: RequestContext, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    require_login(context)
    secret = broker.configs.broker_values()[DELEGATION_TOKEN_SECRET_KEY]
    if not secret:
        raise ApiError(ErrorCode.delegation_token_auth_disabled, "Delegation tokens are off.")
    owners = None
    if request.owners is not None:
        owners = [Principal(owner.principal_type, owner.principal_name) for owner in request.owners]
    shown = [
        token
        for token in broker.image.delegation_tokens.values()
        if (owners is None or any(map(token.is_managed_by, owners)))
        and _may_describe(context, token)
    ]
    return _response(shown, TokenSecret(secret))


def _may_describe(context: RequestContext, token: DelegationToken) -> bool:
    if token.is_managed_by(context.caller().principal):
        return True
    may = context.access.may
    return may(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id) or may(
        Operation.DESCRIBE_TOKENS, ResourceType.USER, str(token.owner)
    )


def _response(
    tokens: Sequence[DelegationToken], secret: TokenSecret
) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(
        error_code=ErrorCode.none,
        tokens=tuple(
            DescribedDelegationToken(
                principal_type=token.owner.type,
                principal_name=token.owner.name,
                token_requester_principal_type=token.requester.type,
                token_requester_principal_name=token.requester.name,
                issue_timestamp=i64(token.issued_ms),
                expiry_timestamp=i64(token.expires_ms),
                max_timestamp=i64(token.max_ms),
                token_id=token.token_id,
                hmac=secret.hmac(token.token_id),
                renewers=tuple(
                    DescribedDelegationTokenRenewer(
                        principal_type=renewer.type, principal_name=renewer.name
                    )
                    for renewer in token.renewers
                ),
            )
            for token in tokens
        ),
        throttle_time=NO_THROTTLE,
    )
