"""A table's address as one text.

delta:/lake/orders            a directory, or a URI such as s3://bucket/orders
iceberg:lake.sales.orders     a table of the catalog `lake`, configured in pyiceberg's settings
iceberg:/lake/orders          a directory, whose parent holds a catalog in a file
"""

import enum
import re
from dataclasses import dataclass
from pathlib import Path


class TableError(Exception):
    """A table cannot be read or written as requested; the message says what to do."""


class Format(enum.StrEnum):
    DELTA = "delta"
    ICEBERG = "iceberg"


@dataclass(frozen=True)
class TableAddress:
    format: Format
    location: str

    def __str__(self) -> str:
        return f"{self.format}:{self.location}"


def parse_address(text: str) -> TableAddress:
    """Raises TableError for an invalid address."""
    name, colon, location = text.partition(":")
    if not colon or name not in list(Format) or not location:
        raise TableError(
            f"{text!r} is not the address of a table: delta:PATH, iceberg:CATALOG.NAMESPACE.TABLE"
            " or iceberg:PATH"
        )
    whole = location if _is_whole(name, location) else str(Path(location).absolute())
    return TableAddress(Format(name), whole)


def _is_whole(name: str, location: str) -> bool:
    """Whether it means the same wherever it is read."""
    return "://" in location or (name == Format.ICEBERG and is_catalog_name(location))


def directory_of(address: TableAddress) -> Path | None:
    """None for a table outside this machine's directories."""
    return None if _is_whole(address.format, address.location) else Path(address.location)


def is_catalog_name(location: str) -> bool:
    return re.fullmatch(r"[^./:]+(\.[^./:]+){2,}", location) is not None
