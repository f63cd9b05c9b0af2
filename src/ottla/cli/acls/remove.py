"""`ottla acls remove`: nothing is allowed or denied by those entries any more."""

from kio.schema.delete_acls.v3.request import DeleteAclsFilter, DeleteAclsRequest

from ottla.cli.acls.resources import NO_RESOURCES, Resources, operation_named, row
from ottla.cli.broker_call import bootstrap_broker, check
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import UsageError
from ottla.cli.output import print_line
from ottla.security.acls import Operation, Permission


def remove(
    *,
    principal: str | None = None,
    operation: str | None = None,
    host: str | None = None,
    permission: str | None = None,
    resources: Resources = NO_RESOURCES,
    connection: Connection = DEFAULT_CONNECTION,
) -> None:
    """Remove the access control entries that match all the options.

    Args:
        principal: Only entries for this user: alice or User:alice.
        operation: Only entries for this operation.
        host: Only entries for this host.
        permission: Only entries that allow or deny: allow or deny.
    """
    if principal is None and not any(resources.named()):
        raise UsageError("say which: --principal, --topic, --group, --cluster, ...")
    if permission not in (None, "allow", "deny"):
        raise UsageError(f"--permission {permission} is neither allow nor deny")
    filters = resources.filters(
        DeleteAclsFilter,
        principal,
        host=host,
        operation=Operation.ANY if operation is None else operation_named(operation),
        permission=Permission[(permission or "any").upper()],
    )
    with bootstrap_broker(connection) as broker:
        response = broker.call(DeleteAclsRequest(filters=tuple(filters)))
    gone = {}
    for result in response.filter_results:
        check(result.error_code, "acls", result.error_message)
        for acl in result.matching_acls:
            cells = row(acl, acl)
            gone[tuple(cells.values())] = cells
    for cells in gone.values():
        print_line(
            f"removed: {cells['permission']} {cells['principal']} {cells['operation']} on "
            f"{cells['resource']} {cells['name']} ({cells['pattern']}) from {cells['host']}"
        )
    if not gone:
        print_line("there is no such entry")
