"""`ottla acls list`: who may do what."""

from typing import Annotated

from cyclopts import Parameter
from kio.schema.describe_acls.v3.request import DescribeAclsRequest
from kio.static.primitive import i8

from ottla.cli.acls.resources import (
    COLUMNS,
    NO_RESOURCES,
    VERSION,
    Resource,
    Resources,
    principal_named,
    row,
)
from ottla.cli.broker_call import bootstrap_broker, check
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.output import print_listing
from ottla.cli.parameters import AsJson
from ottla.security.acls import Operation, PatternType, Permission, ResourceType

PATTERNS = (PatternType.LITERAL, PatternType.PREFIXED, PatternType.MATCH, PatternType.ANY)


def list_acls(
    *,
    principal: Annotated[str | None, Parameter(show_default=False)] = None,
    resources: Resources = NO_RESOURCES,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """List the access control entries, all or those for some resources.

    Args:
        principal: Only those for this user, alice or User:alice.
    """
    pattern_type = resources.pattern_type(PATTERNS)
    named: list[Resource | None] = list(resources.named())
    rows = {}
    with bootstrap_broker(connection) as broker:
        for resource in named or [None]:
            request = DescribeAclsRequest(
                resource_type_filter=i8(resource.type if resource else ResourceType.ANY),
                resource_name_filter=resource.name if resource else None,
                pattern_type_filter=i8(pattern_type if resource else PatternType.ANY),
                principal_filter=None if principal is None else principal_named(principal),
                host_filter=None,
                operation=i8(Operation.ANY),
                permission_type=i8(Permission.ANY),
            )
            response = broker.call(request, VERSION)
            check(response.error_code, "acls", response.error_message)
            for found in response.resources:
                owner = Resource(ResourceType(found.resource_type), found.resource_name)
                for acl in found.acls:
                    cells = row(
                        owner,
                        found.pattern_type,
                        acl.principal,
                        acl.host,
                        acl.operation,
                        acl.permission_type,
                    )
                    rows[tuple(cells.values())] = cells
    ordered = [cells for _, cells in sorted(rows.items())]
    print_listing(COLUMNS, ordered, as_json=as_json)
