from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from tests.pyspark_ottla.tables.written import parquet_files, row, rows_of
from tests.spark.tables.checkpoints import forget_last_commit

from pyspark_ottla.tables.address import TableError
from pyspark_ottla.tables.table import Table, open_table
from pyspark_ottla.tables.writer import TableWriter


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return open_table(f"delta:{tmp_path}/orders")


@pytest.fixture
def writer(table: Table) -> TableWriter:
    return TableWriter(str(table.address), "orders")


def frame(spark: Any, *rows: tuple[Any, ...], schema: str = "item string, price bigint") -> Any:
    return spark.createDataFrame(list(rows), schema)


def test_a_batch_is_written_once_however_often_it_is_given(
    spark: Any, writer: TableWriter, table: Table
) -> None:
    for _ in range(2):
        writer.write(frame(spark, ("desk", 250), ("lamp", 30)), 0)
    writer.write(frame(spark, ("sofa", 900)), 1)
    with pytest.raises(TableError, match="does not take batch 0"):
        writer.write(frame(spark, ("desk", 250)), 0)
    assert rows_of(table) == [row("desk", 250), row("lamp", 30), row("sofa", 900)]
    assert len(parquet_files(table)) == len(table.files())


@pytest.mark.parametrize("way", ["foreachBatch", "format"])
def test_a_first_batch_that_fails_leaves_no_table(
    way: str, spark: Any, writer: TableWriter, table: Table
) -> None:
    bad = spark.sql("select string(raise_error('spoilt')) as item, 1L as price")
    by_format = bad.write.format("ottla_table").mode("append").option("sinkId", writer.sink_id)
    ways: dict[str, Callable[[], object]] = {
        "foreachBatch": lambda: writer.write(bad, 0),
        "format": lambda: by_format.option("batchId", "0").save(writer.table),
    }
    with pytest.raises(PySparkException, match="spoilt"):
        ways[way]()
    assert table.schema() is None  # Another schema can be tried.
    writer.write(frame(spark, ("desk", 2), schema="item string, stock int"), 0)
    assert rows_of(table) == [{"item": "desk", "stock": 2}]


def test_new_columns_are_added_and_wrong_ones_refused(
    spark: Any, writer: TableWriter, table: Table
) -> None:
    writer.write(frame(spark, ("desk", 250)), 0)
    writer.write(frame(spark, ("lamp", 3), schema="item string, stock int"), 1)
    found = table.schema()
    assert found is not None
    assert found.simpleString() == "struct<item:string,price:bigint,stock:int>"
    with pytest.raises(TableError, match="column stock is int in the table and string in the rows"):
        writer.write(frame(spark, ("lamp", "3"), schema="item string, stock string"), 2)
    strict = TableWriter(writer.table, "orders", add_columns=False)
    with pytest.raises(TableError, match="the table has no column more"):
        strict.write(frame(spark, ("lamp", 3), schema="item string, more int"), 2)


def test_a_current_state_has_the_last_row_of_each_key(
    spark: Any, table: Table, tmp_path: Path
) -> None:
    writer = TableWriter(str(table.address), "state", key=("item",), order="number")
    schema = "item string, price bigint, number bigint, _deleted boolean"
    first = [("desk", 1, 1, False), ("desk", 2, 3, False), ("lamp", 3, 2, False)]
    second = [("lamp", None, 5, True), ("desk", 9, 4, None), ("lamp", 8, 4, False)]
    for _ in range(2):
        writer.write(frame(spark, *first, schema=schema), 0)
    for _ in range(2):
        writer.write(frame(spark, *second, schema=schema), 1)
    assert rows_of(table) == [row("desk", 9, number=4)]
    assert not list((tmp_path / "orders" / "_ottla").rglob("*.parquet"))


class Lines:
    """Text files, each of which becomes a batch."""

    def __init__(self, spark: Any, directory: Path) -> None:
        self._spark = spark
        self._directory = directory / "input"
        self._directory.mkdir()

    def add(self, *lines: str) -> None:
        count = len(list(self._directory.iterdir()))
        text = "".join(f"{line}\n" for line in lines)
        (self._directory / f"{count:03}.txt").write_text(text)

    def stream(self) -> Any:
        reader = self._spark.readStream.schema("item string").option("maxFilesPerTrigger", 1)
        return reader.text(str(self._directory)).writeStream.trigger(availableNow=True)


@pytest.fixture
def lines(spark: Any, tmp_path: Path) -> Lines:
    return Lines(spark, tmp_path)


def run(stream: Any, checkpoint: Path) -> None:
    query = stream.option("checkpointLocation", str(checkpoint)).start()
    query.awaitTermination()


@pytest.mark.parametrize("way", ["foreachBatch", "format"])
def test_a_stream_that_restarts_writes_each_row_once(
    way: str, lines: Lines, writer: TableWriter, table: Table, tmp_path: Path
) -> None:
    def stream() -> Any:
        if way == "foreachBatch":
            return lines.stream().foreachBatch(writer.write)
        target = lines.stream().format("ottla_table").option("path", writer.table)
        return target.option("sinkId", writer.sink_id)

    checkpoint = tmp_path / "checkpoint"
    lines.add("a", "b")
    lines.add("c")
    run(stream(), checkpoint)
    forget_last_commit(checkpoint)
    lines.add("d")
    run(stream(), checkpoint)
    assert [line["item"] for line in rows_of(table)] == ["a", "b", "c", "d"]
    assert len(parquet_files(table)) == len(table.files())
    with pytest.raises(StreamingQueryException, match="new checkpoint needs a new sink id"):
        run(stream(), tmp_path / "other")


def test_spark_reads_a_table_of_any_version(spark: Any, writer: TableWriter, table: Table) -> None:
    writer.write(frame(spark, ("desk", 250)), 0)
    first = next(table.versions()).id
    writer.write(frame(spark, ("lamp", 3), schema="item string, stock int"), 1)
    reader = spark.read.format("ottla_table")
    found = reader.load(writer.table).orderBy("item").collect()
    assert [line.asDict() for line in found] == [
        {"item": "desk", "price": 250, "stock": None},
        {"item": "lamp", "price": None, "stock": 3},
    ]
    old = reader.option("version", first).schema("item string").load(writer.table)
    assert [line.item for line in old.collect()] == ["desk"]
