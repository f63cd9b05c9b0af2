"""The table interface for writers, independent of the format.

A `Table` is read anew each time: nothing that others may change is cached between two calls. A
`Claim` is one view of the table together with the right to change it. Its commit is refused with
`TableChanged` when another commit of the same sink has come in between, so that of several drivers
that believe they own a sink, one commits a batch.
"""

import contextlib
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
    """Someone else has committed for the same sink; nothing of this commit was written."""


class TableNotFound(TableError):
    """There is no table at the address."""


@dataclass(frozen=True)
class Version:
    """One state of the table."""

    id: int  # In Delta's log, or Iceberg's snapshot id.
    timestamp_ms: int
    batch: Batch | None  # None: not from a batch of Ottla's.


@dataclass(frozen=True)
class Merge:
    """How changes are applied: rows with the same key are replaced or deleted."""

    key: tuple[str, ...]
    deleted: str  # A boolean column of the changes that the table lacks.
    newer_by: str | None = None  # A table row stays if it is later by this column.


class Claim(ABC):
    last: Version | None  # The sink's last commit; None if there is none.

    @abstractmethod
    def append(self, batch: Batch, files: Sequence[DataFile]) -> None:
        """Add the rows of the files, which are in the table's data location."""

    @abstractmethod
    def merge(self, batch: Batch, changes: "pa.Table", merge: Merge) -> None:
        """Apply the changes, which have unique keys."""


class Table(ABC):
    address: TableAddress
    comes_before_files: bool  # Only an existing table has a location.

    @property
    @abstractmethod
    def location(self) -> str:
        """The table's directory or URI."""

    @property
    @abstractmethod
    def data_prefix(self) -> str:
        """The directory for data files, relative to the location; empty, or ending with /."""

    @abstractmethod
    def schema(self) -> StructType | None:
        """None if there is no table yet."""

    @abstractmethod
    def create(self, schema: StructType, partition_by: Sequence[str] = ()) -> None:
        """Does nothing if it exists."""

    @abstractmethod
    def partition_columns(self) -> tuple[str, ...]:
        """Empty if there is no table."""

    @abstractmethod
    def add_columns(self, fields: Sequence[StructField]) -> None:
        """Add columns that the table lacks."""

    @abstractmethod
    def claim(self, sink_id: str) -> Claim: ...

    def last_batch(self, sink_id: str) -> Batch | None:
        """None if the sink has written none, or there is no table."""
        last = None if self.schema() is None else self.claim(sink_id).last
        return None if last is None else last.batch

    @abstractmethod
    def versions(self, limit: int | None = None) -> Iterator[Version]:
        """Newest first, up to a limit or as far back as the table remembers."""

    @abstractmethod
    def files(self, version: int | None = None) -> list[str]:
        """The version's Parquet files, as paths or URIs; by default the newest's."""

    def compact(self, target_bytes: int) -> int:
        """Merge many small files into few large ones; returns how many are gone."""
        return self.compact_some(Compaction(target_bytes))

    def compact_some(self, wanted: Compaction) -> int:
        """Returns how many files are gone. Raises TableChanged if another writer replaced one."""
        groups = choose_groups(self.stored_files(), wanted)
        if groups:
            self.rewrite(groups)
        return sum(map(len, groups))

    @abstractmethod
    def stored_files(self) -> list[StoredFile]:
        """The files of the newest version."""

    @abstractmethod
    def rewrite(self, groups: Sequence[Sequence[StoredFile]]) -> None:
        """Put the rows of each group into new files, in one commit that changes no row.

        Raises TableChanged, without changes, if a file is no longer in the table.
        """

    @abstractmethod
    def vacuum(self, retention_hours: int, *, dry_run: bool) -> list[str]:
        """Remove files that no version of the last hours needs, and leftovers of failed writes.

        Returns which they are.
        """


def validate_stored(groups: Sequence[Sequence[StoredFile]], stored: Sequence[StoredFile]) -> None:
    """Raises TableChanged if the table no longer has one of the files, to avoid duplicate rows."""
    known = {file.path for file in stored}
    if not all(file.path in known for group in groups for file in group):
        raise TableChanged("another writer has replaced a file that was to be compacted")


@contextlib.contextmanager
def naming_changes(conflict: type[Exception]) -> Iterator[None]:
    """Turns the error of a format's library into TableChanged."""
    try:
        yield
    except conflict as error:
        raise TableChanged(f"the table was changed by another writer meanwhile: {error}") from error


def validate_tasks(address: str) -> None:
    """Raises TableError if tasks could not write, before an empty table is created.

    Spark passes Arrow data to tasks only if pandas is installed.
    """
    if importlib.util.find_spec("pandas") is None:
        extra = parse_address(address).format
        raise TableError(f"writing a table needs pandas: pip install 'ottla[{extra}]'")


def open_table(text: str) -> Table:
    """Raises TableError, saying what to install, if its format's library is missing."""
    address = parse_address(text)
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
