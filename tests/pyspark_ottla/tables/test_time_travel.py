import pytest
from tests.pyspark_ottla.tables.written import row, write_files

from ottla.protocol.topics import TopicPartition
from pyspark_ottla.tables.address import TableError
from pyspark_ottla.tables.batch import Batch, Ends
from pyspark_ottla.tables.table import Table
from pyspark_ottla.tables.time_travel import find_version, parse_offset


def append(table: Table, sink_id: str, number: int, ends: Ends) -> int:
    """Returns the version that it creates."""
    batch = Batch(sink_id, number, ends=ends)
    table.claim(sink_id).append(batch, write_files(table, batch, row("lamp")))
    return next(table.versions(1)).id


def test_the_first_version_that_holds_all_offsets_is_found(table: Table) -> None:
    first = append(table, "a", 0, {"t": {"0": 10}})
    second = append(table, "b", 0, {"u": {"0": 5}})
    third = append(table, "a", 1, {"t": {"0": 10, "1": 3}})
    t0, t1, u0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
    assert find_version(table, {t0: 9}).id == first
    assert find_version(table, {t0: 0}).id == first
    assert find_version(table, {t0: 9, u0: 4}).id == second
    assert find_version(table, {t0: 9, t1: 2}).id == third
    with pytest.raises(TableError, match="t-0 ends at 10, it has nothing of v-0"):
        find_version(table, {t0: 10, u0: 4, TopicPartition("v", 0): 0})


def test_a_place_is_a_topic_a_partition_and_an_offset() -> None:
    assert parse_offset("orders.eu:2:15") == (TopicPartition("orders.eu", 2), 15)
    for wrong in ("orders", "orders:1", "orders:x:1", ":0:1", "orders:0:-1"):
        with pytest.raises(TableError, match="is not like"):
            parse_offset(wrong)
