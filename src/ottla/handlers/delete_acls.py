"""DeleteAcls (31): v1-v3.

Removes the access control entries that match filters, and returns them.

v1  prefixes, and filters by what a name falls under (KIP-290)
v2  flexible
v3  resources of type USER
"""

from kio.schema.delete_acls.v3.request import DeleteAclsRequest
from kio.schema.delete_acls.v3.response import DeleteAclsFilterResult, DeleteAclsResponse

from ottla.handlers.controller_calls import change_acls
from ottla.handlers.refusals import refused
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE

handle = change_acls


def error_response(request: DeleteAclsRequest, error: ApiError) -> DeleteAclsResponse:
    result = refused(DeleteAclsFilterResult, error)
    return DeleteAclsResponse(
        throttle_time=NO_THROTTLE, filter_results=(result,) * len(request.filters)
    )
