"""DeleteAcls (31): v1-v3.

Removes the access control entries that match filters, and returns them.

v1  prefixes, and filters by what a name falls under (KIP-290)
v2  flexible
v3  resources of type USER
"""

from collections.abc import Awaitable

from kio.schema.delete_acls.v3.request import DeleteAclsRequest
from kio.schema.delete_acls.v3.response import DeleteAclsFilterResult, DeleteAclsResponse

from ottla.handlers.authorization import require_authorizer, require_cluster
from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation


def handle(
    broker: Broker, context: RequestContext, request: DeleteAclsRequest
) -> Awaitable[DeleteAclsResponse]:
    require_cluster(context, Operation.ALTER)
    require_authorizer(broker)
    return broker.controller.call(request, caller=context.caller())


def error_response(request: DeleteAclsRequest, error: ApiError) -> DeleteAclsResponse:
    result = DeleteAclsFilterResult(
        error_code=error.code, error_message=error.message, matching_acls=()
    )
    return DeleteAclsResponse(
        throttle_time=NO_THROTTLE, filter_results=(result,) * len(request.filters)
    )
