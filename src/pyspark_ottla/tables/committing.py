"""One commit per batch, whatever fails in between.

1. tasks write files, under names of their attempt
2. the driver commits the files reported to it, with the batch's number
3. leftovers of the batch's other attempts are removed

Step 2 is the point of no return. Before it nothing counts, and Spark runs the batch again. After it
the batch is done: a repeated batch is found in the table, so nothing is written and step 3 is
repeated.

Rows of topics are identified by their offsets, which say more than a number: a batch begins where
the table ends. So a sync whose checkpoint was lost continues, and one that would leave a gap or
write rows twice is refused.
"""

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from pyspark_ottla.tables import locations
from pyspark_ottla.tables.address import TableError
from pyspark_ottla.tables.batch import Batch, Ends, Offsets
from pyspark_ottla.tables.data_files import DataFile, read_files
from pyspark_ottla.tables.table import Claim, Merge, Table, TableChanged, Version

CHANGES = "_ottla/changes"  # In the table's location; readers skip names that begin with _.


class WrongBatch(TableError):
    """The batch is not the table's next one."""


def is_committed(last: Version | None, batch: Batch) -> bool:
    """By number. Raises WrongBatch if the table has a later batch, or another query's."""
    if last is None or last.batch is None:
        return False
    before = last.batch
    if before.query_id and batch.query_id and before.query_id != batch.query_id:
        raise WrongBatch(
            f"sink id {batch.sink_id!r} belongs to another query ({before.query_id}, batch"
            f" {before.batch_id}); a query with a new checkpoint needs a new sink id"
        )
    if before.batch_id > batch.batch_id:
        raise WrongBatch(
            f"the table has batch {before.batch_id} of sink {batch.sink_id!r} and does not take"
            f" batch {batch.batch_id}: the checkpoint is older than the table, or new; a query"
            " with a new checkpoint needs a new sink id"
        )
    return before.batch_id == batch.batch_id


def is_contained(last: Version | None, offsets: Offsets, *, allow_gaps: bool) -> bool:
    """By offsets. Raises WrongBatch for a batch partly in the table, or one after a gap.

    A partition unknown to the table may begin anywhere.
    """
    ends: Ends = {} if last is None or last.batch is None else last.batch.ends
    contained, new = [], []
    for topic, ranges in offsets.items():
        for partition, (start, end) in ranges.items():
            topic_partition, known = f"{topic}-{partition}", ends.get(topic, {}).get(partition)
            if known is not None and end <= known:
                contained.append(topic_partition)
            elif known is None or start == known or (start > known and allow_gaps):
                new.append(topic_partition)
            else:
                raise WrongBatch(
                    f"{topic_partition}: the table ends at offset {known},"
                    f" and the batch is {start} to {end}:"
                    " the checkpoint is not of this table; without it the sync resumes where the"
                    " table ends"
                )
    if contained and new:
        raise WrongBatch(
            f"of one batch the table has {', '.join(contained)} and not {', '.join(new)}:"
            " the checkpoint is not of this table"
        )
    return bool(contained)


def extend(ends: Ends, offsets: Offsets) -> Ends:
    """Where the table ends after the batch."""
    extended = {topic: dict(partitions) for topic, partitions in ends.items()}
    for topic, ranges in offsets.items():
        extended.setdefault(topic, {}).update({name: end for name, (_, end) in ranges.items()})
    return extended


def create_table(
    table: Table, columns: StructType, sink_id: str, partition_by: Sequence[str] = ()
) -> Claim:
    """For files already written. Raises TableChanged if another writer was faster."""
    table.create(columns, partition_by)
    claim, found = table.claim(sink_id), table.schema()
    assert found is not None, "the table was just made"
    if claim.last is not None or found.simpleString() != columns.simpleString():
        raise TableChanged(f"{table.address} was created by another writer meanwhile")
    return claim


def append_files(table: Table, claim: Claim, batch: Batch, files: Sequence[DataFile]) -> None:
    claim.append(replace(batch, rows=sum(file.rows for file in files)), files)
    remove_strays(table, batch, (file.path for file in files))


def merge_files(
    table: Table,
    claim: Claim,
    batch: Batch,
    files: Sequence[DataFile],
    schema: pa.Schema,
    *,
    merge: Merge,
    order: str | None,
) -> None:
    """`schema` is that of the changes, which pass through this process."""
    changes = last_by_key(read_files(table.location, files, schema), merge.key, order)
    column = changes.schema.get_field_index(merge.deleted)
    is_deleted = pc.fill_null(changes.column(column), False)
    changes = changes.set_column(column, merge.deleted, is_deleted)
    claim.merge(replace(batch, rows=len(changes)), changes, merge)
    remove_changes(table, batch)


def last_by_key(changes: pa.Table, key: Sequence[str], order: str | None) -> pa.Table:
    """One row per key, the last by `order`. Raises TableError if that is ambiguous."""
    for name in key:
        if changes.column(name).null_count:
            raise TableError(f"a row cannot be merged: its column {name} of the key is null")
    if order is not None:
        changes = changes.sort_by(order)
    numbered = changes.select(list(key)).append_column("#", pa.array(range(len(changes))))
    last = numbered.group_by(list(key)).aggregate([("#", "max")]).column("#_max")
    if order is None and len(last) < len(changes):
        raise TableError(
            f"rows of one batch have the same {', '.join(key)}; name the column that says which"
            " of them is the last"
        )
    return changes.take(last)


def clean_up(table: Table, last: Version | None) -> None:
    """For a batch found committed: the driver may have died before it removed strays."""
    if last is None or last.batch is None:
        return
    if last.id >= 0:
        remove_strays(table, last.batch, table.files(last.id))
    remove_changes(table, last.batch)


def remove_strays(table: Table, batch: Batch, kept: Iterable[str]) -> None:
    """Remove files of the batch's attempts that the commit does not name."""
    directory = locations.join(table.location, table.data_prefix + batch.directory)
    names = {posixpath.basename(path) for path in kept}
    for file in locations.list_files(directory):
        if file.base_name not in names:
            locations.remove_file(locations.join(directory, file.base_name))


def remove_changes(table: Table, batch: Batch) -> None:
    locations.remove_directory(locations.join(table.location, CHANGES, batch.directory))
