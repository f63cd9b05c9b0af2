"""`ottla groups list`: names, protocols and states of the consumer groups."""

from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import CommandError
from ottla.cli.output import print_json, print_rows
from ottla.cli.parameters import AsJson


def list_groups(*, connection: Connection = DEFAULT_CONNECTION, as_json: AsJson = False) -> None:
    """List the consumer groups."""
    admin = connection.admin()
    outcome = connection.result(admin.list_consumer_groups())
    if outcome.errors:
        raise CommandError(f"not every broker answered: {outcome.errors[0]}")
    rows = [
        {
            "group": group.group_id,
            "protocol": group.type.name.lower() if group.type else None,
            "state": group.state.name.lower(),
        }
        for group in sorted(outcome.valid, key=lambda group: group.group_id)
    ]
    if as_json:
        print_json(rows)
    else:
        print_rows(("group", "protocol", "state"), rows)
