"""`ottla groups delete`: forget a group and what it committed."""

from ottla.cli.connection import DEFAULT_CONNECTION, TIMEOUT_S, Connection
from ottla.cli.output import print_outcome
from ottla.cli.parameters import AsJson


def delete(
    group: str,
    /,
    *,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """Delete a group that has no members, with its committed offsets.

    Args:
        group: Name of the group.
    """
    admin = connection.admin()
    futures = admin.delete_consumer_groups([group], request_timeout=TIMEOUT_S)
    connection.result(futures[group], of=group)
    print_outcome({"group": group, "deleted": True}, f"deleted group {group}", as_json=as_json)
