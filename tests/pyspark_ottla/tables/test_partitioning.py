from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql.types import StructType
from tests.pyspark_ottla.tables.written import SCHEMA, rows_of

from pyspark_ottla.arrow_schemas import to_arrow_schema
from pyspark_ottla.sink.partitioner import choose_partitions
from pyspark_ottla.tables.address import Format, TableError
from pyspark_ottla.tables.batch import Batch
from pyspark_ottla.tables.data_files import DataFile, TaskFiles
from pyspark_ottla.tables.partitioning import Partitioning, parse_partitioning, partitioning_of
from pyspark_ottla.tables.table import Table, open_table

BOTH = parse_partitioning(["day,key/4"])
TIMES = pa.array(
    [datetime(2026, 1, 31, 23, 59, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)],
    pa.timestamp("us", "UTC"),
)
KEYS = pa.array([b"anna", None], pa.binary())


def test_time_and_key_become_columns() -> None:
    bucket = int(choose_partitions("t", KEYS, None, 4, 0, 2)[0])
    found = {name: values.to_pylist() for name, values in BOTH.values(TIMES, KEYS).items()}
    assert found == {
        "_day": [date(2026, 1, 31), date(2026, 2, 1)],
        "_bucket_4": [bucket, 0],
    }


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("month", ["2026-01", "2026-02"]),
        ("hour", ["2026-01-31T23", "2026-02-01T00"]),
    ],
)
def test_other_units_of_time(name: str, values: list[str]) -> None:
    (column,) = parse_partitioning([name]).values(TIMES, KEYS).values()
    assert column.to_pylist() == values


@pytest.mark.parametrize("text", ["week", "key", "key/0", "key/1001", "day,hour", "key/2,key/2"])
def test_what_is_no_partitioning(text: str) -> None:
    with pytest.raises(TableError, match=r"no partitioning|one time and one key"):
        parse_partitioning([text])


def test_columns_of_others_are_not_known() -> None:
    assert partitioning_of(["_day", "_bucket_4"]) == BOTH
    with pytest.raises(TableError, match="partitioned by country; only those"):
        partitioning_of(["country"])


def partitioned(address: str) -> Table:
    table = open_table(address)
    table.create(StructType([*SCHEMA, *BOTH.fields()]), BOTH.columns)
    return table


def write(table: Table, number: int, *items: tuple[str, int]) -> list[DataFile]:
    """Rows on these days of January 2026."""
    schema = table.schema()
    assert schema is not None
    arrow = to_arrow_schema(schema)
    lines = [
        {"item": item, "price": day, "_day": date(2026, 1, day), "_bucket_4": day % 4}
        for item, day in items
    ]
    batch = Batch("sink", number)
    directory = f"{table.data_prefix}{batch.directory}"
    files = TaskFiles(table.location, directory, arrow, "run", BOTH.columns)
    written = files.write([pa.RecordBatch.from_pylist(lines, arrow)], 0, 0)
    table.claim("sink").append(batch, written)
    return written


def test_a_file_has_the_rows_of_one_partition(address: str) -> None:
    table = partitioned(address)
    assert Partitioning(table.partition_columns()) == BOTH
    written = write(table, 0, ("lamp", 1), ("desk", 2), ("sofa", 1))
    assert [(file.rows, file.partition) for file in written] == [
        (2, {"_day": "2026-01-01", "_bucket_4": "1"}),
        (1, {"_day": "2026-01-02", "_bucket_4": "2"}),
    ]
    assert [line["item"] for line in rows_of(table)] == ["desk", "lamp", "sofa"]


def test_files_are_compacted_within_their_partition(address: str) -> None:
    table = partitioned(address)
    for number in range(3):
        write(table, number, (f"a{number}", 1), (f"b{number}", 2))
    assert table.compact(1 << 20) == 6
    partitions = {file.partition for file in table.stored_files()}
    assert {dict(values)["_bucket_4"] for values in partitions} == {"1", "2"}
    assert len(table.files()) == len(partitions) == 2
    assert [line["item"] for line in rows_of(table)] == ["a0", "a1", "a2", "b0", "b1", "b2"]
    assert table.compact(1 << 20) == 0


def test_other_readers_read_one_partition(address: str, format_: str, tmp_path: Path) -> None:
    table = partitioned(address)
    write(table, 0, ("lamp", 1), ("desk", 2))
    write(table, 1, ("sofa", 1))
    table.compact(1 << 20)
    if format_ == Format.DELTA:
        frame = pl.scan_delta(str(tmp_path / "lake" / "orders"))
        found = frame.filter(pl.col("_day") == date(2026, 1, 1)).collect().to_dicts()
    else:
        found = iceberg_rows(table, "_day == '2026-01-01'")
    day = date(2026, 1, 1)
    assert sorted((line["item"], line["_day"], line["_bucket_4"]) for line in found) == [
        ("lamp", day, 1),
        ("sofa", day, 1),
    ]


def iceberg_rows(table: Table, wanted: str) -> list[dict[str, Any]]:
    from pyspark_ottla.tables.iceberg import IcebergTableAt

    assert isinstance(table, IcebergTableAt)
    scan = table.open().scan(row_filter=wanted)
    assert len(list(scan.plan_files())) == 1
    rows: list[dict[str, Any]] = scan.to_arrow().to_pylist()
    return rows
