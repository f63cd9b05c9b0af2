"""AlterClientQuotas (49): v0-v1.

Sets and removes quotas of users, client ids and addresses (KIP-546).

v1  flexible
"""

from kio.schema.alter_client_quotas.v1.request import AlterClientQuotasRequest
from kio.schema.alter_client_quotas.v1.response import AlterClientQuotasResponse

from ottla.controller.quotas import result
from ottla.handlers.controller_calls import call_controller_with
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation

handle = call_controller_with(Operation.ALTER_CONFIGS)


def error_response(request: AlterClientQuotasRequest, error: ApiError) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        throttle_time=NO_THROTTLE,
        entries=tuple(result(entry, error) for entry in request.entries),
    )
