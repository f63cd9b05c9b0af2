from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType
from tests.client.topics import create_topic
from tests.pyspark_ottla.rows import write
from tests.pyspark_ottla.tables.written import SCHEMA, write_files

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.records.builder import Record
from pyspark_ottla.tables.address import TableError
from pyspark_ottla.tables.batch import Batch
from pyspark_ottla.tables.check import check_table
from pyspark_ottla.tables.table import Table, open_table

ROWS = StructType(
    [
        StructField("_topic", StringType()),
        StructField("_partition", IntegerType()),
        StructField("_offset", LongType()),
    ]
)


@pytest.fixture
def topic(bootstrap: str) -> str:
    """Ten records in one partition."""
    with Cluster(bootstrap) as cluster:
        name = create_topic(cluster, 1)
        records = [Record(timestamp=0, key=None, value=b"x")] * 10
        write(cluster, TopicPartition(name, 0), *records)
        return name


def written(address: str, topic: str, *batches: list[int]) -> Table:
    table = open_table(address)
    table.create(ROWS)
    for number, offsets in enumerate(batches):
        end = max(offsets) + 1
        ranges: Any = {topic: {"0": (min(offsets), end)}}
        batch = Batch("sync", number, "", len(offsets), 0, ranges, {topic: {"0": end}})
        rows = [{"_topic": topic, "_partition": 0, "_offset": offset} for offset in offsets]
        table.claim("sync").append(batch, write_files(table, batch, *rows))
    return table


def test_every_record_once(address: str, topic: str, bootstrap: str) -> None:
    (found,) = check_table(written(address, topic, [0, 1, 2], [3, 4]), topic, bootstrap)
    assert found.is_right
    assert (found.rows, found.end, found.proved, found.unknown) == (5, 5, 5, 0)


@pytest.mark.parametrize(
    ("batches", "missing", "twice"),
    [
        (([0, 1, 3],), [2], []),
        (([0, 1], [1, 2]), [], [1]),
        (([2, 3], [5]), [4], []),  # It starts at 2, as with --start latest.
    ],
)
def test_what_is_missing_or_there_twice(
    topic: str,
    bootstrap: str,
    tmp_path: Path,
    batches: tuple[list[int], ...],
    missing: list[int],
    twice: list[int],
) -> None:
    table = written(f"delta:{tmp_path}/t", topic, *batches)
    (found,) = check_table(table, topic, bootstrap)
    assert (found.missing, found.twice, found.is_right) == (missing, twice, False)


def test_rows_that_the_topic_does_not_have(topic: str, bootstrap: str, tmp_path: Path) -> None:
    table = written(f"delta:{tmp_path}/t", topic, [8, 9, 10])
    (found,) = check_table(table, topic, bootstrap)
    assert (found.proved, found.unknown) == (2, 1)


def test_a_table_without_offsets(topic: str, bootstrap: str, tmp_path: Path) -> None:
    table = open_table(f"delta:{tmp_path}/t")
    table.create(SCHEMA)
    with pytest.raises(TableError, match="no columns _topic, _partition and _offset"):
        check_table(table, topic, bootstrap)
    with pytest.raises(TableError, match="has no batches of topic other"):
        check_table(written(f"delta:{tmp_path}/u", topic, [0]), "other", bootstrap)
