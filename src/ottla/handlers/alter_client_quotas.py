"""AlterClientQuotas (49): v0-v1.

Sets and removes quotas of users, client ids and addresses (KIP-546).

v1  flexible
"""

from collections.abc import Awaitable

from kio.schema.alter_client_quotas.v1.request import AlterClientQuotasRequest
from kio.schema.alter_client_quotas.v1.response import AlterClientQuotasResponse

from ottla.controller.quotas import result
from ottla.handlers.authorization import require_cluster
from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation


def handle(
    broker: Broker, context: RequestContext, request: AlterClientQuotasRequest
) -> Awaitable[AlterClientQuotasResponse]:
    require_cluster(context, Operation.ALTER_CONFIGS)
    return broker.controller.call(request, caller=context.caller())


def error_response(request: AlterClientQuotasRequest, error: ApiError) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        throttle_time=NO_THROTTLE,
        entries=tuple(result(entry, error) for entry in request.entries),
    )
