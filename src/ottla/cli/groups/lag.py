"""`ottla groups lag`: how far every group is behind, once or again and again."""

import time
from typing import Any

from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import CommandError, ExitCode, UsageError
from ottla.cli.groups.describe import document_of
from ottla.cli.groups.list import group_rows
from ottla.cli.output import print_line, print_listing
from ottla.cli.parameters import AsJson, Flag

COLUMNS = ("group", "protocol", "state", "members", "lag")


def lag(
    *,
    watch: Flag = False,
    interval: float = 5.0,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """Show the lag of every group, in records over all its partitions.

    Args:
        watch: Refresh until ctrl-c.
        interval: Seconds between updates.
    """
    if interval <= 0:
        raise UsageError(f"--interval {interval:g} is not more than 0")
    while True:
        rows = lag_rows(connection)
        print_listing(COLUMNS, rows, as_json=as_json)
        if not watch:
            return
        time.sleep(interval)
        print_line("")


def lag_rows(connection: Connection) -> list[dict[str, Any]]:
    """The group that is furthest behind first; one that has gone meanwhile is left out."""
    rows = []
    for group in group_rows(connection):
        try:
            document = document_of(connection, str(group["group"]))
        except CommandError as error:
            if error.exit_code is ExitCode.UNREACHABLE:
                raise
            continue
        lags = [
            partition["lag"] for partition in document["partitions"] if partition["lag"] is not None
        ]
        rows.append({**group, "members": len(document["members"]), "lag": sum(lags)})
    return sorted(rows, key=lambda row: (-row["lag"], row["group"]))
