"""Delta tables with the library deltalake: their log is written without a JVM.

A batch is one log entry with the action `txn`, whose app id is the sink and whose version is the
batch; delta-rs refuses it when an entry with the same app id was added after the claim. The `Batch`
data is in the entry's commit info, under `ottla`.
"""

import json
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Field, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction
from pyspark.sql.types import StructField, StructType

from pyspark_ottla.arrow_schemas import to_arrow_schema
from pyspark_ottla.tables import locations
from pyspark_ottla.tables.address import TableAddress, TableError
from pyspark_ottla.tables.batch import Batch
from pyspark_ottla.tables.compaction import StoredFile
from pyspark_ottla.tables.data_files import COMPACTED, DataFile, TaskFiles, read_parquet
from pyspark_ottla.tables.partitioning import partitioning_of
from pyspark_ottla.tables.table import (
    Claim,
    Merge,
    Table,
    TableNotFound,
    Version,
    naming_changes,
    validate_stored,
)

_METADATA = "ottla"
_APP_ID = "ottla.{}"
_FEATURES = {"deletionVectors", "columnMapping"}  # Delta features that are refused.
# How many log entries are searched; the sink's last one is nearly always among the first.
_LOOKS = (8, 128, None)


class DeltaTableAt(Table):
    data_prefix = ""
    comes_before_files = False

    def __init__(self, address: TableAddress) -> None:
        self.address = address

    @property
    def location(self) -> str:
        return self.address.location

    def schema(self) -> StructType | None:
        if not DeltaTable.is_deltatable(self.location):
            return None
        return _schema(self.open())

    def create(self, schema: StructType, partition_by: Sequence[str] = ()) -> None:
        columns = Schema.from_json(schema.json())
        DeltaTable.create(self.location, columns, mode="ignore", partition_by=list(partition_by))

    def partition_columns(self) -> tuple[str, ...]:
        if not DeltaTable.is_deltatable(self.location):
            return ()
        return tuple(self.open().metadata().partition_columns)

    def add_columns(self, fields: Sequence[StructField]) -> None:
        if fields:
            self.open().alter.add_columns([Field.from_json(field.json()) for field in fields])

    def claim(self, sink_id: str) -> Claim:
        return _DeltaClaim(self.open(), sink_id)

    def versions(self, limit: int | None = None) -> Iterator[Version]:
        return iter(_versions(self.open(), limit))

    def files(self, version: int | None = None) -> list[str]:
        return list(self.open(version).file_uris())

    def stored_files(self) -> list[StoredFile]:
        return _stored_files(self.open())

    def rewrite(self, groups: Sequence[Sequence[StoredFile]]) -> None:
        table = self.open()
        validate_stored(groups, _stored_files(table))
        now_ms = time.time_ns() // 1_000_000
        schema = to_arrow_schema(_schema(table))
        files = TaskFiles(self.location, COMPACTED, schema, uuid.uuid4().hex)
        actions: list[AddAction | RemoveAction] = []
        for number, group in enumerate(groups):
            paths = [locations.join(self.location, unquote(file.path)) for file in group]
            batches = (batch for path in paths for batch in read_parquet(path).to_batches())
            actions += [
                AddAction(
                    file.path, file.size, dict(group[0].partition), now_ms, False, file.statistics
                )
                for file in files.write(batches, number, 0)
            ]
            actions += [
                RemoveAction(file.path, False, now_ms, file.size, dict(file.partition))
                for file in group
            ]
        with naming_changes(CommitFailedError):
            table.create_write_transaction(
                actions, "append", table.schema(), table.metadata().partition_columns
            )

    def vacuum(self, retention_hours: int, *, dry_run: bool) -> list[str]:
        """Only a full vacuum finds leftovers of failed attempts.

        It adds log entries even if it removes nothing, and entries displace older ones: a table
        that nobody writes to would forget its last batch.
        """
        removed = self._vacuum(retention_hours, dry_run=True)
        if removed and not dry_run:
            removed = self._vacuum(retention_hours, dry_run=False)
        return removed

    def _vacuum(self, retention_hours: int, *, dry_run: bool) -> list[str]:
        with naming_changes(CommitFailedError):
            return self.open().vacuum(
                retention_hours, dry_run=dry_run, enforce_retention_duration=False, full=True
            )

    def open(self, version: int | None = None) -> DeltaTable:
        try:
            table = DeltaTable(self.location, version=version)
        except TableNotFoundError:
            raise TableNotFound(f"there is no Delta table at {self.location}") from None
        except DeltaError as error:
            raise TableError(f"cannot read {self.location}: {error}") from None
        _validate(table)
        return table


class _DeltaClaim(Claim):
    def __init__(self, table: DeltaTable, sink_id: str) -> None:
        self._table = table
        self._app_id = _APP_ID.format(sink_id)
        self.last = self._find_last(sink_id)

    def append(self, batch: Batch, files: Sequence[DataFile]) -> None:
        now_ms = time.time_ns() // 1_000_000
        actions: list[AddAction | RemoveAction] = [
            AddAction(file.path, file.size, file.partition, now_ms, True, file.statistics)
            for file in files
        ]
        with naming_changes(CommitFailedError):
            self._table.create_write_transaction(
                actions,
                "append",
                self._table.schema(),
                self._table.metadata().partition_columns,
                commit_properties=self._properties(batch),
            )

    def merge(self, batch: Batch, changes: pa.Table, merge: Merge) -> None:
        same_key = " and ".join(f'target."{name}" = source."{name}"' for name in merge.key)
        is_deleted = f'source."{merge.deleted}"'
        with naming_changes(CommitFailedError):
            merger = self._table.merge(
                changes,
                same_key,
                source_alias="source",
                target_alias="target",
                commit_properties=self._properties(batch),
            )
            replaces = f"not {is_deleted}"
            if merge.newer_by is not None:
                column = f'"{merge.newer_by}"'
                replaces += f" and coalesce(target.{column} <= source.{column}, true)"
            merger.when_matched_delete(is_deleted)
            merger.when_matched_update_all(replaces, [merge.deleted])
            merger.when_not_matched_insert_all(f"not {is_deleted}", [merge.deleted])
            merger.execute()

    def _properties(self, batch: Batch) -> CommitProperties:
        return CommitProperties(
            custom_metadata={_METADATA: batch.to_json()},
            app_transactions=[Transaction(self._app_id, batch.batch_id)],
        )

    def _find_last(self, sink_id: str) -> Version | None:
        number = self._table.transaction_version(self._app_id)
        if number is None:
            return None
        for limit in _LOOKS:
            for version in _versions(self._table, limit):
                if version.batch is not None and version.batch.sink_id == sink_id:
                    return version
        # The log was cleaned up since; only the number is left.
        return Version(-1, 0, Batch(sink_id, number))


def _schema(table: DeltaTable) -> StructType:
    return StructType.fromJson(json.loads(table.schema().to_json()))


def _stored_files(table: DeltaTable) -> list[StoredFile]:
    actions = pa.table(table.get_add_actions(flatten=True))
    columns = table.metadata().partition_columns
    return [
        StoredFile(
            action["path"],
            action["size_bytes"],
            tuple((name, str(action[f"partition.{name}"])) for name in columns),
        )
        for action in actions.to_pylist()
    ]


def _validate(table: DeltaTable) -> None:
    """Raises TableError for a table whose files alone are not its rows."""
    metadata = table.metadata()
    partitioning_of(metadata.partition_columns)
    refused = _FEATURES & set(table.protocol().reader_features or ())
    if metadata.configuration.get("delta.columnMapping.mode", "none") != "none":
        refused |= {"columnMapping"}
    if refused:
        raise TableError(f"the table uses {', '.join(sorted(refused))}, which is not taken")


def _versions(table: DeltaTable, limit: int | None) -> list[Version]:
    """Newest first. Updates the table.

    The library counts back from the table's version, but also lists later entries.
    """
    while True:
        versions = [_version(entry) for entry in table.history(limit)]
        known = table.version()
        table.update_incremental()
        if table.version() == known:
            return versions


def _version(entry: dict[str, Any]) -> Version:
    document = entry.get(_METADATA)
    batch = None if document is None else Batch.from_json(document)
    return Version(entry["version"], entry["timestamp"], batch)
