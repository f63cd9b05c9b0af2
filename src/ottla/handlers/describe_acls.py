"""DescribeAcls (29): v1-v3.

Lists the access control entries that match a filter, by resource.

v1  prefixes, and filters by what a name falls under (KIP-290)
v2  flexible
v3  resources of type USER
"""

from kio.schema.describe_acls.v3.request import DescribeAclsRequest
from kio.schema.describe_acls.v3.response import (
    AclDescription,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from kio.static.primitive import i8

from ottla.controller.acls import acl_filter
from ottla.handlers.authorization import require_authorizer, require_cluster
from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import AclBinding, Operation


def handle(
    broker: Broker, context: RequestContext, request: DescribeAclsRequest
) -> DescribeAclsResponse:
    wanted = acl_filter(request)
    if wanted.is_unknown:
        raise ApiError(ErrorCode.invalid_request, "the filter has unknown elements")
    require_cluster(context, Operation.DESCRIBE)
    require_authorizer(broker)
    resources: dict[tuple[int, str, int], list[AclBinding]] = {}
    for acl in broker.image.acls:
        if wanted.matches(acl):
            resource = (acl.resource_type, acl.resource_name, acl.pattern_type)
            resources.setdefault(resource, []).append(acl)
    return DescribeAclsResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        error_message=None,
        resources=tuple(
            DescribeAclsResource(
                resource_type=i8(resource_type),
                resource_name=name,
                pattern_type=i8(pattern_type),
                acls=tuple(map(_description, acls)),
            )
            for (resource_type, name, pattern_type), acls in resources.items()
        ),
    )


def _description(acl: AclBinding) -> AclDescription:
    return AclDescription(
        principal=str(acl.principal),
        host=acl.host,
        operation=i8(acl.operation),
        permission_type=i8(acl.permission),
    )
