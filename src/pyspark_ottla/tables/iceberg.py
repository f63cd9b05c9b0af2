"""Iceberg tables with the library pyiceberg, without a JVM.

A batch is one snapshot. The `Batch` data is in the snapshot's summary, under `ottla`, and in the
table's properties, under `ottla.sink.<sink>`, where it outlives the snapshot. The catalog refuses a
commit if the table's snapshot is not the one that the claim saw; the claim then checks its sink
again, and retries if the sink's last batch is the same.
"""

import datetime as dt
import functools
import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.io.pyarrow import parquet_files_to_data_files
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table import Transaction
from pyiceberg.transforms import IdentityTransform
from pyspark.sql.types import StructField, StructType

from pyspark_ottla.arrow_schemas import from_arrow_schema, to_arrow_schema
from pyspark_ottla.tables import locations
from pyspark_ottla.tables.address import TableAddress, TableError, is_catalog_name
from pyspark_ottla.tables.batch import Batch
from pyspark_ottla.tables.compaction import StoredFile
from pyspark_ottla.tables.data_files import COMPACTED, DataFile, TaskFiles, read_parquet
from pyspark_ottla.tables.partitioning import partitioning_of
from pyspark_ottla.tables.table import (
    Claim,
    Merge,
    Table,
    TableChanged,
    TableNotFound,
    Version,
    naming_changes,
    validate_stored,
)

_METADATA = "ottla"
_PROPERTY = "ottla.sink.{}"
_METADATA_PREFIX = "metadata/"
_REMOVED = (".parquet", ".avro", ".metadata.json")  # Others keep files of their own there.
_NAMESPACE = "default"  # In the catalog next to a table addressed by path.
_COMMITS_MAX = 10
_LOCK_TIMEOUT_S = 60  # For other writers to the catalog next to a table.


Change = Callable[[Transaction, dict[str, str]], None]  # Is given the snapshot's summary.


class IcebergTableAt(Table):
    data_prefix = "data/"
    comes_before_files = True

    def __init__(self, address: TableAddress) -> None:
        self.address = address
        if "://" in address.location:
            raise TableError(
                f"{address}: an Iceberg table in an object store needs a catalog:"
                " iceberg:CATALOG.NAMESPACE.TABLE"
            )

    @property
    def location(self) -> str:
        return self.open().location()

    def schema(self) -> StructType | None:
        try:
            return from_arrow_schema(self.open().schema().as_arrow())
        except TableNotFound:
            return None

    def create(self, schema: StructType, partition_by: Sequence[str] = ()) -> None:
        """An empty table without partitions was left half created: it gets its partitions."""
        catalog, name, location = _find(self.address)
        catalog.create_namespace_if_not_exists(name[:-1])
        arrow = to_arrow_schema(schema)
        table = catalog.create_table_if_not_exists(name, arrow, location=location)
        is_new = table.current_snapshot() is None and table.spec().is_unpartitioned()
        if partition_by and is_new:
            with table.update_spec() as update:
                for column in partition_by:
                    update.add_identity(column)

    def partition_columns(self) -> tuple[str, ...]:
        try:
            return _partition_columns(self.open())
        except TableNotFound:
            return ()

    def add_columns(self, fields: Sequence[StructField]) -> None:
        if fields:
            added = to_arrow_schema(StructType(list(fields)))
            with self.open().update_schema() as update:
                update.union_by_name(added)

    def claim(self, sink_id: str) -> Claim:
        return _IcebergClaim(self.open(), sink_id)

    def versions(self, limit: int | None = None) -> Iterator[Version]:
        return iter(_newest_first(self.open())[:limit])

    def files(self, version: int | None = None) -> list[str]:
        tasks = self.open().scan(snapshot_id=version).plan_files()
        return [task.file.file_path for task in _without_deletes(tasks)]

    def stored_files(self) -> list[StoredFile]:
        return _stored_files(self.open())

    def rewrite(self, groups: Sequence[Sequence[StoredFile]]) -> None:
        table = self.open()
        validate_stored(groups, _stored_files(table))
        rewriter = _Rewriter(table, COMPACTED)
        for group in groups:
            rewriter.replace(
                [file.entry for file in group], (read_parquet(file.path) for file in group)
            )
        with (
            naming_changes(CommitFailedException),
            _without_retries(table).transaction() as transaction,
        ):
            rewriter.commit(transaction, {})

    def vacuum(self, retention_hours: int, *, dry_run: bool) -> list[str]:
        """Expires snapshots, and removes data and metadata that no remaining one needs."""
        table = self.open()
        time = dt.datetime.now(dt.UTC) - dt.timedelta(hours=retention_hours)
        current = table.current_snapshot()
        kept = [
            snapshot
            for snapshot in table.snapshots()
            if snapshot == current or snapshot.timestamp_ms >= time.timestamp() * 1000
        ]
        if not dry_run and len(kept) < len(table.snapshots()):
            with naming_changes(CommitFailedException):
                table.maintenance.expire_snapshots().older_than(time).commit()
            table = self.open()
        needed = _files_of(table, kept)
        removed = [
            info.path
            for directory in (self.data_prefix, _METADATA_PREFIX)
            for info in locations.list_files(
                locations.join(table.location(), directory), recursive=True
            )
            if info.mtime < time and info.path not in needed and info.path.endswith(_REMOVED)
        ]
        for path in () if dry_run else removed:
            locations.remove_file(_like(table.location(), path))
        return removed

    def open(self) -> IcebergTable:
        catalog, name, _ = _find(self.address)
        try:
            table = catalog.load_table(name)
        except NoSuchTableError:
            raise TableNotFound(f"there is no Iceberg table {self.address.location}") from None
        partitioning_of(_partition_columns(table))
        return table


class _IcebergClaim(Claim):
    def __init__(self, table: IcebergTable, sink_id: str) -> None:
        self._table = _without_retries(table)
        self._property = _PROPERTY.format(sink_id)
        self._seen = table.properties.get(self._property)
        self.last = self._find_last(sink_id)

    def append(self, batch: Batch, files: Sequence[DataFile]) -> None:
        paths = [locations.join(self._table.location(), file.path) for file in files]

        def add(transaction: Transaction, summary: dict[str, str]) -> None:
            transaction.add_files(paths, summary, check_duplicate_files=False)

        # A batch without rows is recorded only in the property.
        self._commit(batch, add if paths else None)

    def merge(self, batch: Batch, changes: pa.Table, merge: Merge) -> None:
        def replace(transaction: Transaction, summary: dict[str, str]) -> None:
            rewriter = _Rewriter(self._table, batch.directory)
            left_over, key = changes, list(merge.key)
            for task in _without_deletes(self._table.scan().plan_files()):
                rows = read_parquet(task.file.file_path)
                newer = _newer_rows(rows, changes, merge).select(key)
                left_over = _rows_without(left_over, newer)
                replaced = _rows_without(changes, newer)
                left = _rows_without(rows, replaced.select(key))
                if len(left) < len(rows):
                    rewriter.replace([task.file], [left])
            new = left_over.filter(pa.compute.invert(left_over.column(merge.deleted)))
            rewriter.replace([], [new.drop_columns([merge.deleted])])
            rewriter.commit(transaction, summary)

        self._commit(batch, replace)

    def _commit(self, batch: Batch, change: Change | None) -> None:
        document = json.dumps(batch.to_json())
        for _ in range(_COMMITS_MAX):
            try:
                with self._table.transaction() as transaction:
                    transaction.set_properties({self._property: document})
                    if change is not None:
                        change(transaction, {_METADATA: document})
                return
            except CommitFailedException:
                self._table = _without_retries(self._table.refresh())
                if self._table.properties.get(self._property) != self._seen:
                    raise TableChanged(
                        f"another writer has committed for sink {batch.sink_id!r} meanwhile"
                    ) from None
        raise TableChanged("other writers change the table all the time")

    def _find_last(self, sink_id: str) -> Version | None:
        if self._seen is None:
            return None
        batch = Batch.from_json(json.loads(self._seen))
        for version in _newest_first(self._table):
            if version.batch is not None and version.batch.sink_id == sink_id:
                return Version(version.id, version.timestamp_ms, batch)
        return Version(-1, 0, batch)  # The snapshot has expired, or the batch had no rows.


class _Rewriter:
    """Replaces files in one snapshot."""

    def __init__(self, table: IcebergTable, directory: str) -> None:
        self._table = table
        schema = to_arrow_schema(from_arrow_schema(table.schema().as_arrow()))
        prefix = IcebergTableAt.data_prefix
        run_id = uuid.uuid4().hex
        self._files = TaskFiles(table.location(), f"{prefix}{directory}", schema, run_id)
        self._old: list[Any] = []
        self._new: list[str] = []

    def replace(self, old: Sequence[Any], tables: Iterable[pa.Table]) -> None:
        batches = (batch for table in tables for batch in table.to_batches())
        written = self._files.write(batches, len(self._old), len(self._new))
        self._old += old
        self._new += [locations.join(self._table.location(), file.path) for file in written]

    def commit(self, transaction: Transaction, summary: dict[str, str]) -> None:
        metadata = transaction.table_metadata
        if metadata.name_mapping() is None:
            mapping = metadata.schema().name_mapping.model_dump_json()
            transaction.set_properties({"schema.name-mapping.default": mapping})
        update = transaction.update_snapshot(summary)
        with update.overwrite() as overwrite:
            for file in self._old:
                overwrite.delete_data_file(file)
            for file in parquet_files_to_data_files(self._table.io, metadata, iter(self._new)):
                overwrite.append_data_file(file)


def _find(address: TableAddress) -> tuple[Catalog, tuple[str, ...], str | None]:
    """The catalog, the table's name there, and the location for a new one."""
    if is_catalog_name(address.location):
        catalog, *name = address.location.split(".")
        return _catalog(catalog), tuple(name), None
    path = Path(address.location)
    path.parent.mkdir(parents=True, exist_ok=True)
    return _catalog_in(str(path.parent)), (_NAMESPACE, path.name), path.as_uri()


@functools.cache
def _catalog(name: str) -> Catalog:
    try:
        return load_catalog(name)
    except ValueError as error:
        raise TableError(f"there is no catalog {name} in pyiceberg's settings: {error}") from None


@functools.cache
def _catalog_in(directory: str) -> Catalog:
    from pyiceberg.catalog.sql import SqlCatalog

    return SqlCatalog(
        "ottla",
        uri=f"sqlite:///{directory}/catalog.db?timeout={_LOCK_TIMEOUT_S}",
        warehouse=f"file://{directory}",
    )


def _without_retries(table: IcebergTable) -> IcebergTable:
    """pyiceberg would add the files again after another driver's commit of the same batch.

    Changes only this copy of the table's properties, not the catalog's.
    """
    properties = {**table.metadata.properties, "commit.retry.num-retries": "0"}
    table.metadata = table.metadata.model_copy(update={"properties": properties})
    return table


def _stored_files(table: IcebergTable) -> list[StoredFile]:
    files = [task.file for task in _without_deletes(table.scan().plan_files())]
    columns = _partition_columns(table)
    return [
        StoredFile(
            file.file_path,
            file.file_size_in_bytes,
            tuple((name, str(file.partition[index])) for index, name in enumerate(columns)),
            file,
        )
        for file in files
    ]


def _partition_columns(table: IcebergTable) -> tuple[str, ...]:
    """For a transformed column the field name, which Ottla does not know."""
    return tuple(
        table.schema().find_column_name(field.source_id) or field.name
        if isinstance(field.transform, IdentityTransform)
        else field.name
        for field in table.spec().fields
    )


def _without_deletes(tasks: Iterable[Any]) -> Iterator[Any]:
    for task in tasks:
        if task.delete_files:
            raise TableError("the table has delete files, which are not read; compact it elsewhere")
        yield task


def _rows_without(rows: pa.Table, keys: pa.Table) -> pa.Table:
    names = keys.column_names
    typed = keys.cast(rows.select(names).schema)
    numbered = rows.select(names).append_column("#", pa.array(range(len(rows)), pa.int64()))
    left = numbered.join(typed, names, join_type="left anti").column("#")
    return rows if len(left) == len(rows) else rows.take(left)


def _newer_rows(rows: pa.Table, changes: pa.Table, merge: Merge) -> pa.Table:
    """Rows that no change with the same key replaces."""
    column = merge.newer_by
    if column is None:
        return rows.slice(0, 0)
    names = list(merge.key)
    changed = changes.select([*dict.fromkeys([*names, column])])
    changed = changed.cast(rows.select(changed.column_names).schema)
    changed = changed.append_column("#", changed.column(column)).select([*names, "#"])
    both = rows.select([*dict.fromkeys([*names, column])]).join(changed, names, join_type="inner")
    return both.filter(pa.compute.greater(both.column(column), both.column("#")))


def _files_of(table: IcebergTable, snapshots: Iterable[Any]) -> set[str]:
    """Data and metadata of the snapshots, as paths without the scheme."""
    manifests = {
        manifest.manifest_path: manifest
        for snapshot in snapshots
        for manifest in snapshot.manifests(table.io)
    }
    data = {
        entry.data_file.file_path
        for manifest in manifests.values()
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
    }
    lists = {snapshot.manifest_list for snapshot in snapshots}
    statistics = {file.statistics_path for file in table.metadata.statistics}
    needed = data | lists | statistics | manifests.keys() | {table.metadata_location}
    return {locations.open_location(location)[1] for location in needed}


def _like(location: str, path: str) -> str:
    """The path as the same kind of URI."""
    scheme, separator, _ = location.partition("://")
    return f"{scheme}://{path}" if separator else path


def _version(snapshot: Any) -> Version:
    summary = snapshot.summary
    document = None if summary is None else summary.additional_properties.get(_METADATA)
    batch = None if document is None else Batch.from_json(json.loads(document))
    return Version(snapshot.snapshot_id, snapshot.timestamp_ms, batch)


def _newest_first(table: IcebergTable) -> list[Version]:
    snapshots = sorted(table.snapshots(), key=lambda snapshot: snapshot.sequence_number or 0)
    return [_version(snapshot) for snapshot in reversed(snapshots)]
