"""CreateAcls (30): v1-v3.

Adds access control entries. Each has its own result; an existing one is not an error.

v1  prefixes (KIP-290)
v2  flexible
v3  resources of type USER
"""

from kio.schema.create_acls.v3.request import CreateAclsRequest
from kio.schema.create_acls.v3.response import AclCreationResult, CreateAclsResponse

from ottla.handlers.controller_calls import change_acls
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE

handle = change_acls


def error_response(request: CreateAclsRequest, error: ApiError) -> CreateAclsResponse:
    result = AclCreationResult(error_code=error.code, error_message=error.message)
    return CreateAclsResponse(throttle_time=NO_THROTTLE, results=(result,) * len(request.creations))
