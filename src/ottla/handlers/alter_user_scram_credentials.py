"""AlterUserScramCredentials (51): v0.

Sets and removes user passwords (KIP-554). The client salts them; the password itself is never sent.
"""

from collections.abc import Awaitable

from kio.schema.alter_user_scram_credentials.v0.request import AlterUserScramCredentialsRequest
from kio.schema.alter_user_scram_credentials.v0.response import AlterUserScramCredentialsResponse

from ottla.controller.users import result
from ottla.handlers.authorization import require_cluster
from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation


def handle(
    broker: Broker, context: RequestContext, request: AlterUserScramCredentialsRequest
) -> Awaitable[AlterUserScramCredentialsResponse]:
    require_cluster(context, Operation.ALTER)
    return broker.controller.call(request, caller=context.caller())


def error_response(
    request: AlterUserScramCredentialsRequest, error: ApiError
) -> AlterUserScramCredentialsResponse:
    users = [deletion.name for deletion in request.deletions] + [
        upsertion.name for upsertion in request.upsertions
    ]
    return AlterUserScramCredentialsResponse(
        throttle_time=NO_THROTTLE,
        results=tuple(result(user, error) for user in dict.fromkeys(users)),
    )
