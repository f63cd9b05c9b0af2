"""`ottla table compact`: few large files instead of many small ones."""

from ottla.cli.output import print_line
from ottla.cli.parameters import validate_positive
from ottla.cli.tables.libraries import TableAddress, table_errors

TARGET_MB = 128


def compact(table: TableAddress, /, *, target_mb: int = TARGET_MB) -> None:
    """Merge small files into larger ones without blocking readers or writers.

    Args:
        target_mb: Approximate size of the files.
    """
    validate_positive("--target-mb", target_mb)
    with table_errors():
        from pyspark_ottla.tables.table import open_table

        opened = open_table(table)
        before = len(opened.files())
        removed = opened.compact(target_mb << 20)
        after = len(opened.files()) if removed else before
    print_line(f"{before} files before, {after} now")
