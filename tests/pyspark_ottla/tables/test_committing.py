from dataclasses import replace

import pyarrow as pa
import pytest
from tests.pyspark_ottla.tables.written import parquet_files, row, rows_of, write_files

from pyspark_ottla.tables import committing
from pyspark_ottla.tables.address import TableError
from pyspark_ottla.tables.batch import Batch
from pyspark_ottla.tables.committing import WrongBatch, extend, is_committed, is_contained
from pyspark_ottla.tables.table import Table, Version

BATCH = Batch("sink", 3, "query")


def at(batch: Batch) -> Version:
    return Version(7, 0, batch)


def test_a_batch_is_committed_by_its_number() -> None:
    assert not is_committed(None, BATCH)
    assert not is_committed(at(replace(BATCH, batch_id=2)), BATCH)
    assert is_committed(at(BATCH), BATCH)


def test_a_batch_before_the_last_one_is_refused() -> None:
    with pytest.raises(WrongBatch, match=r"has batch 4 .* does not take batch 3"):
        is_committed(at(replace(BATCH, batch_id=4)), BATCH)


def test_a_batch_of_another_query_is_refused() -> None:
    with pytest.raises(WrongBatch, match="another query"):
        is_committed(at(replace(BATCH, query_id="other", batch_id=2)), BATCH)
    assert is_committed(at(replace(BATCH, query_id="")), BATCH)


ENDS = at(replace(BATCH, ends={"t": {"0": 10, "1": 20}}))


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        ({"t": {"0": (10, 12)}}, False),
        ({"t": {"0": (10, 12), "1": (20, 21)}}, False),
        ({"t": {"0": (5, 10), "1": (18, 20)}}, True),
        ({"t": {"0": (0, 3)}}, True),
        ({"t": {"0": (10, 12), "2": (5, 6)}}, False),
        ({"new": {"0": (0, 1)}}, False),
    ],
)
def test_a_batch_of_offsets_begins_where_the_table_ends(
    offsets: dict[str, dict[str, tuple[int, int]]], expected: bool
) -> None:
    assert is_contained(ENDS, offsets, allow_gaps=False) is expected
    assert not is_contained(None, offsets, allow_gaps=False)


@pytest.mark.parametrize(
    ("offsets", "reason"),
    [
        ({"t": {"0": (8, 12)}}, "ends at offset 10, and the batch is 8 to 12"),
        ({"t": {"0": (11, 12)}}, "ends at offset 10, and the batch is 11 to 12"),
        ({"t": {"0": (5, 10), "1": (20, 21)}}, "has t-0 and not t-1"),
    ],
)
def test_a_batch_that_would_leave_a_gap_or_double_rows_is_refused(
    offsets: dict[str, dict[str, tuple[int, int]]], reason: str
) -> None:
    with pytest.raises(WrongBatch, match=reason):
        is_contained(ENDS, offsets, allow_gaps=False)


def test_a_gap_is_allowed_when_it_was_said_so() -> None:
    assert not is_contained(ENDS, {"t": {"0": (15, 20)}}, allow_gaps=True)
    with pytest.raises(WrongBatch):
        is_contained(ENDS, {"t": {"0": (8, 20)}}, allow_gaps=True)


def test_ends_are_those_of_all_partitions() -> None:
    offsets = {"t": {"1": (20, 25)}, "u": {"0": (0, 2)}}
    ends = extend({"t": {"0": 10, "1": 20}}, offsets)
    assert ends == {"t": {"0": 10, "1": 25}, "u": {"0": 2}}


def test_files_of_other_attempts_are_removed_after_the_commit(table: Table) -> None:
    write_files(table, BATCH, row("lamp"), run="killed")
    write_files(table, BATCH, row("lamp"), attempt=1)
    files = write_files(table, BATCH, row("lamp"), attempt=2)
    committing.append_files(table, table.claim("sink"), BATCH, files)
    assert parquet_files(table) == ["run-0-2-0.parquet"]
    assert rows_of(table) == [row("lamp")]


def test_files_of_a_batch_that_was_committed_before_are_removed(table: Table) -> None:
    table.claim("sink").append(BATCH, write_files(table, BATCH, row("lamp")))
    later = replace(BATCH, batch_id=4)
    other = replace(BATCH, sink_id="other")
    table.claim("other").append(other, write_files(table, other, row("desk"), run="other"))
    write_files(table, BATCH, row("lamp"), run="again")
    write_files(table, later, row("sofa"), run="later")
    last = table.claim("sink").last
    assert last is not None
    committing.clean_up(table, last)
    committing.clean_up(table, last)
    assert parquet_files(table) == [
        "later-0-0-0.parquet",
        "other-0-0-0.parquet",
        "run-0-0-0.parquet",
    ]
    assert rows_of(table) == [row("desk"), row("lamp")]


def test_the_last_change_of_a_key_counts() -> None:
    changes = pa.Table.from_pylist(
        [
            {"key": "a", "offset": 3, "value": 30},
            {"key": "b", "offset": 2, "value": 20},
            {"key": "a", "offset": 1, "value": 10},
        ]
    )
    found = committing.last_by_key(changes, ["key"], "offset").sort_by("key").to_pylist()
    assert [(line["key"], line["value"]) for line in found] == [("a", 30), ("b", 20)]


def test_changes_without_a_key_or_an_order_are_refused() -> None:
    twice = pa.Table.from_pylist([{"key": "a"}, {"key": "a"}])
    with pytest.raises(TableError, match="rows of one batch have the same key"):
        committing.last_by_key(twice, ["key"], None)
    without = pa.Table.from_pylist([{"key": "a"}, {"key": None}])
    with pytest.raises(TableError, match="key of the key is null"):
        committing.last_by_key(without, ["key"], None)
