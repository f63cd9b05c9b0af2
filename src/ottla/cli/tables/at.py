"""`ottla table at`: the version of a table that holds the records up to an offset."""

from typing import Annotated

from cyclopts import Parameter

from ottla.cli.output import print_json, print_line
from ottla.cli.parameters import AsJson
from ottla.cli.tables.libraries import TableAddress, table_errors


def at(
    table: TableAddress,
    /,
    *,
    offset: Annotated[
        list[str],
        Parameter(help="TOPIC:PARTITION:OFFSET of a record; may be repeated to require all."),
    ],
    as_json: AsJson = False,
) -> None:
    """Find the first version of a table that has a record and all earlier ones of its partition."""
    with table_errors():
        from pyspark_ottla.tables.table import open_table
        from pyspark_ottla.tables.time_travel import find_version, parse_offset

        version = find_version(open_table(table), dict(map(parse_offset, offset)))
    if as_json:
        assert version.batch is not None, "offsets are those of batches"
        ends = version.batch.ends
        print_json({"version": version.id, "timestamp_ms": version.timestamp_ms, "ends": ends})
    else:
        print_line(str(version.id))
