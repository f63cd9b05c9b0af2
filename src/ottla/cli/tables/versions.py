"""`ottla table versions`: what was written to a table, and when."""

import datetime as dt
from typing import Any

from ottla.cli.output import print_listing
from ottla.cli.parameters import AsJson
from ottla.cli.tables.libraries import TableAddress, table_errors

COLUMNS = ("version", "time", "sink", "batch", "rows", "bad")


def versions(table: TableAddress, /, *, limit: int = 20, as_json: AsJson = False) -> None:
    """List the latest versions of a table, newest first.

    Args:
        limit: How many to list.
    """
    with table_errors():
        from pyspark_ottla.tables.table import open_table

        found = list(open_table(table).versions(limit))
    rows = [_row(version) for version in found]
    print_listing(COLUMNS, rows, as_json=as_json)


def _row(version: Any) -> dict[str, Any]:
    time = dt.datetime.fromtimestamp(version.timestamp_ms / 1000, dt.UTC)
    row = {"version": version.id, "time": time.isoformat(timespec="seconds")}
    return row if version.batch is None else row | version.batch.to_json()
