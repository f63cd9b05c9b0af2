"""Where a table is, in one text.

delta:/lake/orders            a directory, or a URI such as s3://bucket/orders
iceberg:lake.sales.orders     a table of the catalog `lake`, which pyiceberg's settings describe
iceberg:/lake/orders          a directory, whose parent holds a catalog in a file
"""

import enum
import re
from dataclasses import dataclass
from pathlib import Path


class TableError(Exception):
    """A table that cannot be read or written as it was asked; the message says what to do."""


class Format(enum.StrEnum):
    DELTA = "delta"
    ICEBERG = "iceberg"


@dataclass(frozen=True)
class TableAddress:
    format: Format
    place: str

    def __str__(self) -> str:
        return f"{self.format}:{self.place}"


def parse_address(text: str) -> TableAddress:
    """TableError for what is no address."""
    name, colon, place = text.partition(":")
    if not colon or name not in list(Format) or not place:
        raise TableError(
            f"{text!r} is not the address of a table: delta:PATH, iceberg:CATALOG.NAMESPACE.TABLE"
            " or iceberg:PATH"
        )
    return TableAddress(Format(name), place if _is_whole(name, place) else _absolute(place))


def _is_whole(name: str, place: str) -> bool:
    """Whether it means the same wherever it is read."""
    return "://" in place or (name == Format.ICEBERG and is_catalog_name(place))


def directory_of(address: TableAddress) -> Path | None:
    """None of a table that is somewhere else than in a directory of this machine."""
    return None if _is_whole(address.format, address.place) else Path(address.place)


def is_catalog_name(place: str) -> bool:
    return re.fullmatch(r"[^./:]+(\.[^./:]+){2,}", place) is not None


def _absolute(place: str) -> str:
    return str(Path(place).absolute())
