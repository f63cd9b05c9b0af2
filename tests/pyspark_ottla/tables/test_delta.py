import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql.types import StringType, StructField, StructType
from tests.pyspark_ottla.tables.written import row, write_files

from pyspark_ottla.tables.address import TableError
from pyspark_ottla.tables.batch import Batch
from pyspark_ottla.tables.table import open_table

SCHEMA = pa.schema([("item", pa.string()), ("day", pa.string())])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"partition_by": "day"}, "partitioned by day"),
        ({"configuration": {"delta.enableDeletionVectors": "true"}}, "deletionVectors"),
    ],
)
def test_tables_whose_files_are_not_their_rows_are_refused(
    tmp_path: Path, options: dict[str, Any], reason: str
) -> None:
    DeltaTable.create(tmp_path / "orders", SCHEMA, **options)
    table = open_table(f"delta:{tmp_path}/orders")
    for use in (table.schema, table.files, lambda: table.claim("sink")):
        with pytest.raises(TableError, match=reason):
            use()


def test_a_batch_is_known_by_its_number_when_the_log_was_cleaned_up(tmp_path: Path) -> None:
    table = open_table(f"delta:{tmp_path}/orders")
    table.create(StructType([StructField("item", StringType())]))
    batch = Batch("sink", 4)
    table.claim("sink").append(batch, write_files(table, batch, row("lamp")))
    DeltaTable(tmp_path / "orders").create_checkpoint()
    for entry in (tmp_path / "orders" / "_delta_log").glob("0*.json"):
        entry.unlink()
    last = table.claim("sink").last
    assert last is not None
    assert (last.id, last.batch) == (-1, batch)


def test_versions_have_their_numbers_while_others_are_written(tmp_path: Path) -> None:
    table = open_table(f"delta:{tmp_path}/orders")
    table.create(StructType([StructField("item", StringType())]))

    def write() -> None:
        for number in range(1, 21):
            table.claim("sink").append(Batch("sink", number), ())

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        found = [(version.id, version.batch) for version in table.versions(5) if version.batch]
        assert found == [(number, Batch("sink", number)) for number, _ in found]
    writer.join()
    assert len(list(table.versions())) == 21
