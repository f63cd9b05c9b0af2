"""`ottla acls list`: who may do what."""

from kio.schema.describe_acls.v3.request import DescribeAclsRequest

from ottla.cli.acls.resources import COLUMNS, NO_RESOURCES, Resources, row
from ottla.cli.broker_call import bootstrap_broker, check
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.output import print_listing
from ottla.cli.parameters import AsJson


def list_acls(
    *,
    principal: str | None = None,
    resources: Resources = NO_RESOURCES,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """List the access control entries, all or those for some resources.

    Args:
        principal: Only entries for this user: alice or User:alice.
    """
    requests = resources.filters(DescribeAclsRequest, principal)
    rows = {}
    with bootstrap_broker(connection) as broker:
        for request in requests:
            response = broker.call(request)
            check(response.error_code, "acls", response.error_message)
            for found in response.resources:
                for acl in found.acls:
                    cells = row(found, acl)
                    rows[tuple(cells.values())] = cells
    ordered = [cells for _, cells in sorted(rows.items())]
    print_listing(COLUMNS, ordered, as_json=as_json)
