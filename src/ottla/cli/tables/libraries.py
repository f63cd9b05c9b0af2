"""The way from a command to the libraries of tables, which are imported when it is called."""

import contextlib
from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter

from ottla.cli.errors import CommandError
from ottla.client.wire.errors import WireError

TableAddress = Annotated[
    str,
    Parameter(
        name="table",
        help="delta:PATH, iceberg:PATH, or iceberg:CATALOG.NAMESPACE.TABLE.",
    ),
]


@contextlib.contextmanager
def table_errors() -> Iterator[None]:
    """Turn what tables raise into errors of the command."""
    try:
        from pyspark_ottla.options import OptionError
        from pyspark_ottla.tables.address import TableError
        from pyspark_ottla.tables.table import TableChanged
    except ModuleNotFoundError as error:
        raise CommandError(
            f"tables need {error.name}: pip install 'ottla[delta]' or 'ottla[iceberg]'"
        ) from None
    try:
        yield
    except (OptionError, TableError, TableChanged, WireError) as error:
        raise CommandError(str(error)) from None
