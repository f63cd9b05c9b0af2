"""Tables for tests: batches written without Spark, and a table's contents."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from pyspark_ottla.arrow_schemas import to_arrow_schema
from pyspark_ottla.tables.batch import Batch
from pyspark_ottla.tables.data_files import DataFile, TaskFiles
from pyspark_ottla.tables.table import Table

SCHEMA = StructType([StructField("item", StringType()), StructField("price", LongType())])
WIDER = StructType([*SCHEMA, StructField("stock", IntegerType())])


def row(item: str, price: int | None = None, **more: Any) -> dict[str, Any]:
    return {"item": item, "price": price, **more}


def write_files(
    table: Table, batch: Batch, *rows: dict[str, Any], run: str = "run", attempt: int = 0
) -> list[DataFile]:
    """Like a task."""
    schema = table.schema()
    assert schema is not None
    directory = f"{table.data_prefix}{batch.directory}"
    arrow = to_arrow_schema(schema)
    files = TaskFiles(table.location, directory, arrow, run)
    return files.write([pa.RecordBatch.from_pylist(list(rows), arrow)], 0, attempt)


def read(table: Table, version: int | None = None) -> list[dict[str, Any]]:
    """Columns that a file lacks are left out."""
    return [
        line
        for path in table.files(version)
        for line in pq.read_table(path.removeprefix("file://"), partitioning=None).to_pylist()
    ]


def rows_of(table: Table, version: int | None = None) -> list[dict[str, Any]]:
    """Keyed by item."""
    return sorted(read(table, version), key=lambda line: str(line["item"]))


def parquet_files(table: Table) -> list[str]:
    """The names of all files in the table's directory."""
    return sorted(
        path.name for path in Path(table.location.removeprefix("file://")).rglob("*.parquet")
    )
