"""`ottla acls remove`: nothing is allowed or denied by those entries any more."""

from typing import Annotated

from cyclopts import Parameter
from kio.schema.delete_acls.v3.request import DeleteAclsFilter, DeleteAclsRequest
from kio.static.primitive import i8

from ottla.cli.acls.list import PATTERNS
from ottla.cli.acls.resources import (
    NO_RESOURCES,
    VERSION,
    Resource,
    Resources,
    operation_named,
    principal_named,
    row,
)
from ottla.cli.broker_call import bootstrap_broker, check
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import UsageError
from ottla.cli.output import print_line
from ottla.security.acls import Operation, PatternType, Permission, ResourceType

Name = Annotated[str | None, Parameter(show_default=False)]


def remove(
    *,
    principal: Name = None,
    operation: Name = None,
    host: Name = None,
    permission: Name = None,
    resources: Resources = NO_RESOURCES,
    connection: Connection = DEFAULT_CONNECTION,
) -> None:
    """Remove the access control entries that match all the options.

    Args:
        principal: Only those for this user, alice or User:alice.
        operation: Only those for this operation.
        host: Only those for this host, as it was given.
        permission: Only those that allow, or that deny: allow or deny.
    """
    named: list[Resource | None] = list(resources.named())
    if not named and principal is None:
        raise UsageError("say which: --principal, --topic, --group, --cluster, ...")
    if permission not in (None, "allow", "deny"):
        raise UsageError(f"--permission {permission} is neither allow nor deny")
    pattern_type = resources.pattern_type(PATTERNS)
    filters = tuple(
        DeleteAclsFilter(
            resource_type_filter=i8(resource.type if resource else ResourceType.ANY),
            resource_name_filter=resource.name if resource else None,
            pattern_type_filter=i8(pattern_type if resource else PatternType.ANY),
            principal_filter=None if principal is None else principal_named(principal),
            host_filter=host,
            operation=i8(Operation.ANY if operation is None else operation_named(operation)),
            permission_type=i8(Permission[(permission or "any").upper()]),
        )
        for resource in named or [None]
    )
    with bootstrap_broker(connection) as broker:
        response = broker.call(DeleteAclsRequest(filters=filters), VERSION)
    gone = {}
    for result in response.filter_results:
        check(result.error_code, "acls", result.error_message)
        for acl in result.matching_acls:
            resource = Resource(ResourceType(acl.resource_type), acl.resource_name)
            cells = row(
                resource,
                acl.pattern_type,
                acl.principal,
                acl.host,
                acl.operation,
                acl.permission_type,
            )
            gone[tuple(cells.values())] = cells
    for cells in gone.values():
        print_line(
            f"removed: {cells['permission']} {cells['principal']} {cells['operation']} on "
            f"{cells['resource']} {cells['name']} ({cells['pattern']}) from {cells['host']}"
        )
    if not gone:
        print_line("there is no such entry")
