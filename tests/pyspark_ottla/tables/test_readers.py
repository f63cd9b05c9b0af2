"""Other libraries that read the tables, as found on PyPI."""

import warnings
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from tests.pyspark_ottla.tables.written import WIDER, row, write_files

from pyspark_ottla.tables.batch import Batch
from pyspark_ottla.tables.delta import DeltaTableAt
from pyspark_ottla.tables.iceberg import IcebergTableAt
from pyspark_ottla.tables.table import Table

ROWS = [("desk", None, None), ("lamp", 30, 3)]
QUERY = "select item, price, stock from orders order by item"


@pytest.fixture
def written(table: Table) -> Table:
    """A table with a column that its first rows lack, and compacted strays."""
    first, second = Batch("sink", 0), Batch("sink", 1)
    table.claim("sink").append(first, write_files(table, first, row("desk")))
    write_files(table, second, row("stray"), run="stray")
    table.add_columns([WIDER["stock"]])
    table.claim("sink").append(second, write_files(table, second, row("lamp", 30, stock=3)))
    return table


def test_polars(written: Table) -> None:
    assert _polars(written).sort("item").rows() == ROWS


def _polars(table: Table) -> Any:
    if isinstance(table, DeltaTableAt):
        return pl.read_delta(table.location)
    assert isinstance(table, IcebergTableAt)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # By default Polars plans with a package of its own.
        return pl.scan_iceberg(table.open()).collect()


def test_duckdb(written: Table) -> None:
    with duckdb.connect() as connection:
        if isinstance(written, DeltaTableAt):
            orders = pa.RecordBatchReader.from_stream(written.open().scan())
            connection.register("orders", orders)
        else:
            assert isinstance(written, IcebergTableAt)
            written.open().scan().to_duckdb("orders", connection)
        assert connection.execute(QUERY).fetchall() == ROWS


def test_duckdb_by_the_list_of_files(written: Table) -> None:
    files = [path.removeprefix("file://") for path in written.files()]
    source = f"read_parquet({files}, union_by_name = true)"
    with duckdb.connect() as connection:
        assert connection.execute(QUERY.replace("orders", source)).fetchall() == ROWS
