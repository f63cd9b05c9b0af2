"""The common behavior of all table formats."""

from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark.sql.types import StructField, StructType
from tests.pyspark_ottla.tables.written import (
    SCHEMA,
    WIDER,
    parquet_files,
    row,
    rows_of,
    write_files,
)

from pyspark_ottla.tables.address import TableError
from pyspark_ottla.tables.batch import Batch
from pyspark_ottla.tables.table import (
    Merge,
    Table,
    TableChanged,
    TableNotFound,
    open_table,
)

FIRST = Batch("sink", 0, "query", 1, 0, {"t": {"0": (0, 1)}}, {"t": {"0": 1}})
SECOND = Batch("sink", 1, "query", 1, 0, {"t": {"0": (1, 2)}}, {"t": {"0": 2}})
CHANGES = pa.schema([("item", pa.string()), ("price", pa.int64()), ("_deleted", pa.bool_())])


def append(table: Table, batch: Batch, *items: str) -> None:
    claim = table.claim(batch.sink_id)
    claim.append(batch, write_files(table, batch, *map(row, items)))


def test_there_is_no_table_at_first(address: str) -> None:
    table = open_table(address)
    assert table.schema() is None
    with pytest.raises(TableNotFound, match="there is no"):
        table.claim("sink")


def test_an_address_names_a_format() -> None:
    with pytest.raises(TableError, match=r"not the address of a table: delta:PATH"):
        open_table("parquet:/somewhere")


def test_a_table_that_is_made_twice_keeps_its_rows(table: Table) -> None:
    append(table, FIRST, "lamp")
    table.create(SCHEMA)
    assert rows_of(table) == [row("lamp")]
    found = table.schema()
    assert found is not None
    assert [(field.name, field.dataType) for field in found] == [
        (field.name, field.dataType) for field in SCHEMA
    ]


def test_a_claim_knows_the_last_batch_of_its_sink(table: Table) -> None:
    assert table.claim("sink").last is None
    append(table, FIRST, "lamp")
    append(table, replace(SECOND, sink_id="other"), "desk")
    last = table.claim("sink").last
    assert last is not None
    assert last.batch == FIRST
    assert rows_of(table, last.id) == [row("lamp")]


def test_of_two_drivers_with_one_batch_one_commits(table: Table) -> None:
    append(table, FIRST, "lamp")
    slow, fast = table.claim("sink"), table.claim("sink")
    fast.append(SECOND, write_files(table, SECOND, row("desk"), run="fast"))
    with pytest.raises(TableChanged):
        slow.append(SECOND, write_files(table, SECOND, row("desk"), run="slow"))
    assert rows_of(table) == [row("desk"), row("lamp")]


def test_added_columns_are_null_in_earlier_rows(table: Table) -> None:
    append(table, FIRST, "lamp")
    table.add_columns([WIDER["stock"]])
    table.add_columns([])
    claim = table.claim("sink")
    claim.append(SECOND, write_files(table, SECOND, row("sofa", 9, stock=3)))
    found = table.schema()
    assert found is not None
    assert found.fieldNames() == ["item", "price", "stock"]
    assert rows_of(table) == [row("lamp"), row("sofa", 9, stock=3)]


def test_nested_columns_can_be_added(table: Table) -> None:
    nested = StructType.fromJson(
        {
            "type": "struct",
            "fields": [
                {
                    "name": "tags",
                    "nullable": True,
                    "metadata": {},
                    "type": {"type": "array", "elementType": "string", "containsNull": True},
                },
            ],
        }
    )
    table.add_columns(nested.fields)
    claim = table.claim("sink")
    claim.append(FIRST, write_files(table, FIRST, row("sofa", tags=["soft"])))
    assert rows_of(table) == [row("sofa", tags=["soft"])]


def test_changes_replace_and_remove_rows_of_their_key(table: Table) -> None:
    append(table, FIRST, "desk", "lamp", "sofa")
    changes = pa.Table.from_pylist(
        [
            row("lamp", 30, _deleted=False),
            row("sofa", _deleted=True),
            row("vase", 5, _deleted=False),
            row("none", _deleted=True),
        ],
        CHANGES,
    )
    table.claim("sink").merge(SECOND, changes, Merge(("item",), "_deleted"))
    assert rows_of(table) == [row("desk"), row("lamp", 30), row("vase", 5)]
    last = table.claim("sink").last
    assert last is not None
    assert last.batch == SECOND


def test_a_row_that_is_newer_stays(table: Table) -> None:
    append(table, FIRST, "lamp", "desk")
    rows = [row("lamp", 30, _deleted=False), row("desk", 40, _deleted=False)]
    later = replace(SECOND, batch_id=SECOND.batch_id + 1)
    changes = pa.Table.from_pylist(rows, CHANGES)
    table.claim("sink").merge(SECOND, changes, Merge(("item",), "_deleted", "price"))
    assert rows_of(table) == [row("desk", 40), row("lamp", 30)]
    rows = [
        row("lamp", 29, _deleted=False),
        row("desk", 41, _deleted=False),
        row("vase", 5, _deleted=False),
    ]
    changes = pa.Table.from_pylist(rows, CHANGES)
    table.claim("sink").merge(later, changes, Merge(("item",), "_deleted", "price"))
    assert rows_of(table) == [row("desk", 41), row("lamp", 30), row("vase", 5)]


def test_of_two_drivers_with_one_change_one_commits(table: Table) -> None:
    append(table, FIRST, "lamp")
    changes = pa.Table.from_pylist([row("lamp", 30, _deleted=False)], CHANGES)
    slow, fast = table.claim("sink"), table.claim("sink")
    fast.merge(SECOND, changes, Merge(("item",), "_deleted"))
    with pytest.raises(TableChanged):
        slow.merge(SECOND, changes, Merge(("item",), "_deleted"))
    assert rows_of(table) == [row("lamp", 30)]


def test_versions_name_their_batches_the_newest_first(table: Table) -> None:
    append(table, FIRST, "lamp")
    append(table, SECOND, "desk")
    versions = [version for version in table.versions() if version.batch]
    assert [version.batch for version in versions] == [SECOND, FIRST]
    assert versions[0].timestamp_ms >= versions[1].timestamp_ms > 0


def test_a_compacted_table_has_the_same_rows_in_fewer_files(table: Table) -> None:
    for number in range(4):
        append(table, replace(FIRST, batch_id=number), f"item-{number}")
    before = table.claim("sink").last
    assert table.compact(1 << 20) == 4
    assert len(table.files()) == 1
    assert [line["item"] for line in rows_of(table)] == [f"item-{number}" for number in range(4)]
    assert table.claim("sink").last == before
    assert table.compact(1 << 20) == 0


def test_a_vacuum_removes_what_no_version_has_and_keeps_the_rest(table: Table) -> None:
    append(table, FIRST, "lamp")
    stray = write_files(table, FIRST, row("lamp"), run="stray")[0]
    kept = [name for name in parquet_files(table) if not name.startswith("stray")]
    planned = table.vacuum(0, dry_run=True)
    names = [path.rpartition("/")[2] for path in planned if path.endswith(".parquet")]
    assert names == [stray.path.rpartition("/")[2]]
    assert len(parquet_files(table)) == len(kept) + 1
    table.vacuum(0, dry_run=False)
    assert parquet_files(table) == kept
    assert rows_of(table) == [row("lamp")]


def test_a_vacuum_leaves_young_files(table: Table) -> None:
    append(table, FIRST, "lamp")
    write_files(table, FIRST, row("lamp"), run="stray")
    assert table.vacuum(1, dry_run=False) == []


def test_columns_keep_their_types(address: str) -> None:
    kinds = {
        "a": "byte",
        "b": "integer",
        "c": "long",
        "d": "float",
        "e": "double",
        "f": "boolean",
        "g": "binary",
        "h": "date",
        "i": "timestamp",
        "j": "decimal(10,2)",
    }
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in kinds.items()
    ]
    wanted = StructType.fromJson({"type": "struct", "fields": fields})
    table = open_table(address)
    table.create(StructType([*wanted, StructField("item", SCHEMA["item"].dataType)]))
    claim = table.claim("sink")
    claim.append(FIRST, write_files(table, FIRST, row("lamp", b=1, j=None)))
    found = table.schema()
    assert found is not None
    names = {field.name: field.dataType.simpleString() for field in found}
    expected = {field.name: field.dataType.simpleString() for field in wanted}
    assert {name: names[name] for name in kinds if name != "a"} == {
        name: expected[name] for name in kinds if name != "a"
    }
    assert names["a"] in ("tinyint", "int")
