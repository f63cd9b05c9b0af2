import pytest
from pyspark.sql.types import StringType, StructField, StructType
from tests.pyspark_ottla.tables.written import SCHEMA, WIDER, row, rows_of, write_files

from pyspark_ottla.tables.batch import Batch
from pyspark_ottla.tables.compaction import Compaction, StoredFile, choose_groups
from pyspark_ottla.tables.table import Table, TableChanged

MB = 1024 * 1024
TIERED = Compaction(128 * MB, files_min=4, tiered=True)


def stored(*sizes: int, partition: str = "") -> list[StoredFile]:
    values = (("_day", partition),) if partition else ()
    return [StoredFile(f"{partition}{number}", size, values) for number, size in enumerate(sizes)]


def sizes_of(groups: list[list[StoredFile]]) -> list[list[int]]:
    return [[file.size for file in group] for group in groups]


def test_files_that_are_large_enough_or_alone_stay() -> None:
    assert choose_groups(stored(64 * MB, 200 * MB, 1 * MB), Compaction(128 * MB)) == []


def test_a_group_is_not_larger_than_the_target() -> None:
    groups = choose_groups(stored(60 * MB, 60 * MB, 60 * MB, 5 * MB), Compaction(128 * MB))
    assert sizes_of(groups) == [[60 * MB, 60 * MB], [60 * MB, 5 * MB]]


def test_files_are_merged_with_others_of_about_their_size() -> None:
    small, medium = [1000] * 5, [20 * MB] * 4
    assert sizes_of(choose_groups(stored(*medium, *small), TIERED)) == [small, medium]
    assert choose_groups(stored(*small[:3], *medium[:3]), TIERED) == []


def test_the_budget_ends_a_pass_and_lets_a_group_pass_that_alone_is_larger() -> None:
    files = stored(*[1000] * 4, *[20 * MB] * 4)
    budget = Compaction(128 * MB, files_min=4, tiered=True, budget_bytes=10 * MB)
    assert sizes_of(choose_groups(files, budget)) == [[1000] * 4]
    assert sizes_of(choose_groups(files[4:], budget)) == [[20 * MB] * 4]


def test_files_of_two_partitions_are_not_merged() -> None:
    files = [*stored(1, 2, partition="monday"), *stored(3, 4, partition="tuesday")]
    assert sizes_of(choose_groups(files, Compaction(128 * MB))) == [[1, 2], [3, 4]]


def append(table: Table, number: int, *items: str) -> None:
    batch = Batch("sink", number)
    table.claim("sink").append(batch, write_files(table, batch, *map(row, items)))


def test_files_that_another_writer_has_replaced_are_not_rewritten(table: Table) -> None:
    append(table, 0, "lamp")
    append(table, 1, "desk")
    seen = table.stored_files()
    assert table.compact(MB) == 2
    with pytest.raises(TableChanged, match="has replaced a file"):
        table.rewrite([seen])
    assert rows_of(table) == [row("desk"), row("lamp")]


def test_rows_of_files_before_a_new_column_are_kept(table: Table) -> None:
    append(table, 0, "lamp")
    table.add_columns([WIDER["stock"]])
    append(table, 1, "desk")
    assert table.compact(MB) == 2
    assert rows_of(table) == [row("desk", stock=None), row("lamp", stock=None)]


def test_a_compaction_is_no_batch(table: Table) -> None:
    append(table, 0, "lamp")
    append(table, 1, "desk")
    table.compact(MB)
    assert next(table.versions()).batch is None
    assert table.schema() == StructType(
        [StructField("item", StringType()), StructField("price", SCHEMA["price"].dataType)]
    )
