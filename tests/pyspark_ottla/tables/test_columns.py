from pathlib import Path

import pytest
from pyspark.sql.types import (
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
)
from tests.pyspark_ottla.tables.written import SCHEMA

from pyspark_ottla.tables.address import TableError
from pyspark_ottla.tables.columns import fits, new_columns, prepare_table
from pyspark_ottla.tables.committing import create_table
from pyspark_ottla.tables.table import Table, open_table


@pytest.mark.parametrize(
    ("given", "wanted", "expected"),
    [
        (LongType(), LongType(), True),
        (ShortType(), LongType(), True),
        (LongType(), IntegerType(), False),
        (FloatType(), DoubleType(), True),
        (IntegerType(), DoubleType(), False),
        (StringType(), LongType(), False),
    ],
)
def test_numbers_fit_into_wider_ones(given: DataType, wanted: DataType, expected: bool) -> None:
    assert fits(given, wanted) is expected


def test_new_columns_may_be_null(table: Table) -> None:
    rows = StructType([StructField("stock", IntegerType(), nullable=False), SCHEMA["item"]])
    (field,) = new_columns(SCHEMA, rows)
    assert (field.name, field.nullable) == ("stock", True)
    after = prepare_table(table, rows, add_columns=True)
    assert after.fieldNames() == ["item", "price", "stock"]


def test_a_delta_table_is_created_with_its_first_commit(tmp_path: Path) -> None:
    table = open_table(f"delta:{tmp_path}/orders")
    assert prepare_table(table, SCHEMA, add_columns=True) == SCHEMA
    assert table.schema() is None
    assert create_table(table, SCHEMA, "orders").last is None
    assert table.schema() == SCHEMA


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ([StructField("item", NullType())], "column item has no type"),
        ([StructField("a", LongType()), StructField("A", LongType())], "more than one column a"),
        ([StructField("price", StringType())], "price is bigint in the table and string"),
    ],
)
def test_rows_that_do_not_fit(fields: list[StructField], reason: str, table: Table) -> None:
    with pytest.raises(TableError, match=reason):
        prepare_table(table, StructType(fields), add_columns=True)
