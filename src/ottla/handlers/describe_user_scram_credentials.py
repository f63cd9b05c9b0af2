"""DescribeUserScramCredentials (50): v0.

The users and their login mechanisms (KIP-554). Reveals nothing about passwords.
"""

from collections import Counter

from kio.schema.describe_user_scram_credentials.v0.request import (
    DescribeUserScramCredentialsRequest,
)
from kio.schema.describe_user_scram_credentials.v0.response import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from kio.static.primitive import i8, i32

from ottla.handlers.authorization import require_cluster
from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation


def handle(
    broker: Broker, context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    require_cluster(context, Operation.DESCRIBE)
    known: dict[str, list[CredentialInfo]] = {}
    for (user, mechanism), credential in sorted(broker.image.scram_credentials.items()):
        info = CredentialInfo(mechanism=i8(mechanism), iterations=i32(credential.iterations))
        known.setdefault(user, []).append(info)
    asked = Counter(user.name for user in request.users or ()) or Counter(known.keys())
    return DescribeUserScramCredentialsResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        error_message=None,
        results=tuple(_result(user, count, known.get(user)) for user, count in asked.items()),
    )


def _result(
    user: str, count: int, infos: list[CredentialInfo] | None
) -> DescribeUserScramCredentialsResult:
    code, message = ErrorCode.none, None
    if count > 1:
        code, message = ErrorCode.duplicate_resource, f"{user!r} is asked for more than once"
    elif infos is None:
        code, message = ErrorCode.resource_not_found, f"there is no user {user!r}"
    return DescribeUserScramCredentialsResult(
        user=user,
        error_code=code,
        error_message=message,
        credential_infos=() if code is not ErrorCode.none else tuple(infos or ()),
    )
