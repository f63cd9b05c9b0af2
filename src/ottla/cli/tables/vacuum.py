"""`ottla table vacuum`: removes files that no version needs any more."""

from ottla.cli.errors import UsageError
from ottla.cli.output import print_line
from ottla.cli.parameters import Flag
from ottla.cli.tables.libraries import TableAddress, table_errors

RETENTION_HOURS = 168


def vacuum(
    table: TableAddress,
    /,
    *,
    retention_hours: int = RETENTION_HOURS,
    dry_run: Flag = False,
    force: Flag = False,
) -> None:
    """Remove files that no recent version uses, and leftovers of failed writes.

    Args:
        retention_hours: How long a replaced version stays readable.
        dry_run: Only show what would be removed.
        force: Accept less than a week; readers of older versions and long-running writes may then
            lose their files.
    """
    if retention_hours < 0:
        raise UsageError(f"--retention-hours {retention_hours} is less than 0")
    if retention_hours < RETENTION_HOURS and not force and not dry_run:
        raise UsageError(
            f"--retention-hours {retention_hours} is less than a week ({RETENTION_HOURS});"
            " files that somebody still reads or writes may be lost: add --force if nobody does"
        )
    with table_errors():
        from pyspark_ottla.tables.table import open_table

        removed = open_table(table).vacuum(retention_hours, dry_run=dry_run)
    for path in removed if dry_run else ():
        print_line(path)
    if not dry_run:
        print_line(f"removed {len(removed)} files")
