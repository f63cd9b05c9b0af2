"""AlterUserScramCredentials (51): v0.

Sets and removes user passwords (KIP-554). The client salts them; the password itself is never sent.
"""

from kio.schema.alter_user_scram_credentials.v0.request import AlterUserScramCredentialsRequest
from kio.schema.alter_user_scram_credentials.v0.response import AlterUserScramCredentialsResponse

from ottla.controller.users import result
from ottla.handlers.controller_calls import call_controller_with
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation

handle = call_controller_with(Operation.ALTER)


def error_response(
    request: AlterUserScramCredentialsRequest, error: ApiError
) -> AlterUserScramCredentialsResponse:
    users = [each.name for each in request.deletions] + [each.name for each in request.upsertions]
    return AlterUserScramCredentialsResponse(
        throttle_time=NO_THROTTLE,
        results=tuple(result(user, error) for user in dict.fromkeys(users)),
    )
