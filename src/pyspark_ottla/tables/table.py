"""What a table can do for those who write it, whatever its format.

A `Table` is asked anew each time: nothing of what others change is remembered between two calls.
A `Claim` is one look at the table together with the right to change what was seen. Its commit is
refused with `TableChanged` when another commit of the same sink has come between, so that of
several drivers that believe a sink to be theirs one commits a batch.
"""

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import StructField, StructType

from pyspark_ottla.tables.address import Format, TableAddress, TableError, parse_address
from pyspark_ottla.tables.batch import Batch
from pyspark_ottla.tables.compaction import Compaction, StoredFile, choose_groups
from pyspark_ottla.tables.data_files import DataFile

if TYPE_CHECKING:
    import pyarrow as pa


class TableChanged(Exception):
    """Somebody else has committed for the same sink meanwhile; nothing of this commit is there."""


class TableNotFound(TableError):
    """There is no table at the address."""


@dataclass(frozen=True)
class Version:
    """One state of the table."""

    id: int  # Of Delta's log, or of Iceberg's snapshot.
    timestamp_ms: int
    batch: Batch | None  # None: not made by a batch of Ottla.


@dataclass(frozen=True)
class Merge:
    """How changes are applied: rows of the same key are replaced, or removed."""

    key: tuple[str, ...]
    deleted: str  # A boolean column of the changes that the table does not have.
    newer_by: str | None = None  # A row of the table stays if it is later by this column.


@dataclass(frozen=True)
class Vacuumed:
    files: Sequence[str]  # Removed, or to be removed.


class Claim(ABC):
    last: Version | None  # The sink's last commit; None: there is none.

    @abstractmethod
    def append(self, batch: Batch, files: Sequence[DataFile]) -> None:
        """Add the rows of the files, which are in the table's data location."""

    @abstractmethod
    def merge(self, batch: Batch, changes: "pa.Table", merge: Merge) -> None:
        """Apply the changes, of which no two have the same key."""


class Table(ABC):
    address: TableAddress
    comes_before_files: bool  # Only a table that is there has a location.

    @property
    @abstractmethod
    def location(self) -> str:
        """The directory or URI of the table."""

    @property
    @abstractmethod
    def data_prefix(self) -> str:
        """The directory for data files, relative to the location; empty, or it ends with /."""

    @abstractmethod
    def schema(self) -> StructType | None:
        """None: there is no table yet."""

    @abstractmethod
    def create(self, schema: StructType, partition_by: Sequence[str] = ()) -> None:
        """Nothing happens if it is there."""

    @abstractmethod
    def partition_columns(self) -> tuple[str, ...]:
        """None for a table that is not there."""

    @abstractmethod
    def add_columns(self, fields: Sequence[StructField]) -> None:
        """Those that the table does not have."""

    @abstractmethod
    def claim(self, sink_id: str) -> Claim: ...

    @abstractmethod
    def versions(self, limit: int | None = None) -> Iterator[Version]:
        """The newest first, so many, or as far back as the table remembers."""

    @abstractmethod
    def files(self, version: int | None = None) -> list[str]:
        """The Parquet files of a version, as paths or URIs; of the newest if none is given."""

    def compact(self, target_bytes: int) -> int:
        """Make few large files of many small ones; how many are gone."""
        return self.compact_some(Compaction(target_bytes))

    def compact_some(self, wanted: Compaction) -> int:
        """How many files are gone. TableChanged if another writer has replaced one meanwhile."""
        groups = choose_groups(self.stored_files(), wanted)
        if groups:
            self.rewrite(groups)
        return sum(map(len, groups))

    @abstractmethod
    def stored_files(self) -> list[StoredFile]:
        """Those of the newest version."""

    @abstractmethod
    def rewrite(self, groups: Sequence[Sequence[StoredFile]]) -> None:
        """Put the rows of each group into new files, in one commit that changes no row.

        TableChanged, and nothing is changed, if a file is not in the table any more.
        """

    @abstractmethod
    def vacuum(self, retention_hours: int, *, dry_run: bool) -> Vacuumed:
        """Remove files that no version of the last hours needs, strays of failed writes too."""


def validate_stored(groups: Sequence[Sequence[StoredFile]], stored: Sequence[StoredFile]) -> None:
    """TableChanged if the table has lost one of the files: its rows would be there twice."""
    known = {file.path for file in stored}
    if not all(file.path in known for group in groups for file in group):
        raise TableChanged("another writer has replaced a file that was to be compacted")


def validate_tasks(address: TableAddress | str) -> None:
    """TableError where tasks could not write, before a table is made that stays empty.

    Spark hands Arrow data to tasks only where pandas is there.
    """
    if importlib.util.find_spec("pandas") is None:
        extra = (parse_address(address) if isinstance(address, str) else address).format
        raise TableError(f"writing a table needs pandas: pip install 'ottla[{extra}]'")


def open_table(address: TableAddress | str) -> Table:
    """TableError with what to install when the library of its format is missing."""
    if isinstance(address, str):
        address = parse_address(address)
    try:
        if address.format is Format.DELTA:
            from pyspark_ottla.tables.delta import DeltaTableAt

            return DeltaTableAt(address)
        from pyspark_ottla.tables.iceberg import IcebergTableAt

        return IcebergTableAt(address)
    except ModuleNotFoundError as error:
        raise TableError(
            f"tables of {address.format.name.title()} need {error.name}:"
            f" pip install 'ottla[{address.format}]'"
        ) from None
