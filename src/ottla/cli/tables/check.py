"""`ottla table check`: prove that a table has every record of a topic once."""

from ottla.cli.command_config import hand_to_spark
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import CommandError
from ottla.cli.output import print_json, print_rows
from ottla.cli.parameters import AsJson
from ottla.cli.tables.libraries import TableAddress, table_errors


def check(
    table: TableAddress,
    /,
    *,
    topic: str,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """Compare the offsets in a table with those of its topic. Exits with 1 if they differ.

    Not for upsert tables, which keep only the last record of each key.

    Args:
        topic: The table's topic.
    """
    hand_to_spark(connection.command_config)
    with table_errors():
        from pyspark_ottla.subscription import UnknownPartition
        from pyspark_ottla.tables.check import check_table
        from pyspark_ottla.tables.table import open_table

        try:
            found = check_table(open_table(table), topic, connection.bootstrap_server)
        except UnknownPartition as error:
            raise CommandError(str(error)) from None
    rows = [vars(each) for each in found]
    if as_json:
        print_json({"topic": topic, "right": all(each.is_right for each in found), "found": rows})
    else:
        print_rows(("partition", "rows", "end", "proved", "unknown", "missing", "twice"), rows)
    if not all(each.is_right for each in found):
        raise CommandError(f"the table does not have every record of {topic} once")
