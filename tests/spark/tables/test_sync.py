"""Topics as tables, by a real Spark."""

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from tests.client.topics import create_topic
from tests.pyspark_ottla.rows import write
from tests.pyspark_ottla.tables.written import parquet_files, read
from tests.spark.tables.checkpoints import forget_last_commit

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.records.builder import Record
from pyspark_ottla.source_options import ValueFormat
from pyspark_ottla.tables import committing
from pyspark_ottla.tables import sync as sync_module
from pyspark_ottla.tables.address import TableError
from pyspark_ottla.tables.check import check_table
from pyspark_ottla.tables.compaction import Compaction
from pyspark_ottla.tables.maintenance import Maintenance
from pyspark_ottla.tables.partitioning import UNPARTITIONED, parse_partitioning
from pyspark_ottla.tables.sync_plan import SyncPlan
from pyspark_ottla.tables.sync_run import SyncRun
from pyspark_ottla.tables.table import Table, Version, open_table
from pyspark_ottla.tables.time_travel import find_version
from pyspark_ottla.tables.topic_rows import BadRows, TopicRows

JSON = TopicRows(ValueFormat.JSON, None, True, False, BadRows.FAIL, False)


class Sync:
    """A topic with two partitions, and a table for it."""

    def __init__(self, spark: Any, cluster: Cluster, plan: SyncPlan) -> None:
        self.spark = spark
        self._cluster = cluster
        self.plan = plan
        self.versions: list[Version] = []  # As reported.

    @property
    def table(self) -> Table:
        return open_table(self.plan.table)

    def write(self, partition: int, *values: Any, key: str = "k") -> None:
        records = [
            Record(
                timestamp=1,
                key=key.encode(),
                value=value if isinstance(value, bytes | None) else json.dumps(value).encode(),
            )
            for value in values
        ]
        write(self._cluster, TopicPartition(self.plan.topic, partition), *records)

    def run(self, **changes: Any) -> None:
        """Once."""
        self.plan = replace(self.plan, **changes)
        run = SyncRun(self.spark, self.plan, interval_s=None, report=self.versions.append)
        run.start()
        run.wait()

    def rows(self, *names: str, version: int | None = None) -> list[tuple[Any, ...]]:
        return sorted(tuple(line.get(name) for name in names) for line in read(self.table, version))


@pytest.fixture(params=["delta", "iceberg"])
def sync(request: Any, spark: Any, cluster: Cluster, bootstrap: str, tmp_path: Path) -> Sync:
    topic = create_topic(cluster, partitions=2)
    table = f"{request.param}:{tmp_path}/lake/orders"
    return Sync(spark, cluster, SyncPlan(topic, table, bootstrap, JSON, "sync"))


only_delta = pytest.mark.parametrize("sync", ["delta"], indirect=True)


def test_every_record_is_a_row_once_over_restarts(sync: Sync) -> None:
    sync.write(0, {"item": "a", "price": 1}, {"item": "b"})
    sync.write(1, {"item": "c"})
    sync.run()
    forget_last_commit(Path(sync.plan.checkpoint_location().removeprefix("file://")))
    sync.write(0, {"item": "d"})
    sync.run()
    topic = sync.plan.topic
    assert sync.rows("item", "_topic", "_partition", "_offset", "_key") == [
        ("a", topic, 0, 0, "k"),
        ("b", topic, 0, 1, "k"),
        ("c", topic, 1, 0, "k"),
        ("d", topic, 0, 2, "k"),
    ]
    assert len(parquet_files(sync.table)) == 3
    assert [version.batch.rows for version in sync.versions if version.batch] == [3, 1]


FAULTS = [
    (sync_module.TopicSync, "_write"),  # Before there are files.
    (committing, "append_files"),  # With files but no commit.
    (committing, "remove_strays"),  # With a commit that Spark does not know of.
]


@only_delta
def test_a_record_is_a_row_once_wherever_a_batch_fails(
    sync: Sync, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, (owner, name) in enumerate(FAULTS):
        sync.write(number % 2, {"item": str(number)})
        with monkeypatch.context() as faulty:
            faulty.setattr(owner, name, fail)
            with pytest.raises(PySparkException, match="this is a fault"):
                sync.run()
    sync.run()
    assert sync.rows("item") == [("0",), ("1",), ("2",)]
    assert len(parquet_files(sync.table)) == len(sync.table.files())


def test_a_record_is_a_row_once_wherever_maintenance_fails(
    sync: Sync, bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, name in enumerate(["rewrite", "vacuum"]):
        sync.write(0, {"item": f"a{number}"})
        sync.write(1, {"item": f"b{number}"})
        with monkeypatch.context() as faulty:
            faulty.setattr(type(sync.table), name, fail)
            with pytest.raises(PySparkException, match="this is a fault"):
                sync.run(maintenance=eager_maintenance())
    sync.run(maintenance=eager_maintenance())
    checked = check_table(sync.table, sync.plan.topic, bootstrap)
    assert [(found.is_right, found.proved) for found in checked] == [(True, 2), (True, 2)]
    assert len(sync.table.files()) == 1
    sync.table.vacuum(0, dry_run=False)
    assert len(parquet_files(sync.table)) == 1


def eager_maintenance() -> Maintenance:
    return Maintenance(0, 100, Compaction(1 << 20, files_min=2))


def fail(*_: Any, **__: Any) -> None:
    raise RuntimeError("this is a fault")


@only_delta
def test_a_sync_that_is_stopped_ends_between_two_batches(sync: Sync) -> None:
    run = SyncRun(sync.spark, sync.plan, interval_s=0.05, report=sync.versions.append)
    sync.write(0, {"item": "a"})
    run.start()
    waiting = threading.Thread(target=run.wait)
    waiting.start()
    while not sync.versions:
        assert waiting.is_alive()
        waiting.join(0.05)
    sync.write(1, {"item": "b"})
    while len(sync.versions) < 2:
        assert waiting.is_alive()
        waiting.join(0.05)
    run.stop()
    waiting.join()
    assert sync.rows("item") == [("a",), ("b",)]


def test_a_lost_checkpoint_goes_on_where_the_table_ends(sync: Sync, tmp_path: Path) -> None:
    sync.write(0, {"item": "a"})
    sync.run()
    sync.write(0, {"item": "b"})
    sync.write(1, {"item": "c"})
    sync.run(checkpoint=str(tmp_path / "new"))
    assert sync.rows("item") == [("a",), ("b",), ("c",)]


@only_delta
def test_a_checkpoint_of_another_table_is_refused(sync: Sync, tmp_path: Path) -> None:
    sync.write(0, {"item": "a"}, {"item": "b"})
    sync.run(checkpoint=str(tmp_path / "first"))
    sync.write(0, {"item": "c"})
    sync.run(checkpoint=str(tmp_path / "second"))
    sync.write(0, {"item": "d"})
    with pytest.raises(PySparkException, match="ends at offset 3, and the batch is 2 to 4"):
        sync.run(checkpoint=str(tmp_path / "first"))
    assert sync.rows("item") == [("a",), ("b",), ("c",)]


@only_delta
def test_bad_values_stop_the_sync_or_are_kept_and_counted(sync: Sync) -> None:
    sync.write(0, {"price": 1}, b"nonsense")
    with pytest.raises(PySparkException, match=r"-0: offset 1: the value is not json that fits"):
        sync.run(schema="price int")
    assert sync.table.schema() is None  # Another schema can be tried.
    sync.run(rows=replace(JSON, bad_rows=BadRows.COLUMN))
    assert sync.rows("_offset", "price", "_corrupt") == [(0, 1, None), (1, None, "nonsense")]
    assert [version.batch.bad_rows for version in sync.versions if version.batch] == [1]


def test_new_fields_become_columns(sync: Sync) -> None:
    sync.write(0, {"item": "a"})
    sync.run(new_fields=True)
    sync.write(0, {"item": "b", "price": 1, "tags": ["x"]})
    sync.write(1, {"item": "c", "price": 1.5})
    sync.run()
    assert sync.rows("item", "price", "tags") == [
        ("a", None, None),
        ("b", 1.0, ["x"]),
        ("c", 1.5, None),
    ]


def test_a_partitioned_table_stays_as_it_was_made(sync: Sync, bootstrap: str) -> None:
    sync.write(0, {"item": "a"}, {"item": "b"}, key="x")
    sync.write(1, {"item": "c"}, key="y")
    sync.run(partitioning=parse_partitioning(["month,key/8"]))
    sync.write(0, {"item": "d", "price": 1}, key="y")
    sync.run(partitioning=UNPARTITIONED, new_fields=True)
    assert sync.rows("item", "_month", "_key") == [
        ("a", "1970-01", "x"),
        ("b", "1970-01", "x"),
        ("c", "1970-01", "y"),
        ("d", "1970-01", "y"),
    ]
    buckets = {(key, bucket) for key, bucket in sync.rows("_key", "_bucket_8")}
    assert len(buckets) == 2
    assert all(found.is_right for found in check_table(sync.table, sync.plan.topic, bootstrap))
    with pytest.raises(TableError, match="is partitioned by _month, _bucket_8; a table keeps"):
        sync.run(partitioning=parse_partitioning(["day"]))


@only_delta
def test_a_topic_without_records_has_no_schema(sync: Sync) -> None:
    with pytest.raises(TableError, match="no records that are objects"):
        sync.run()
    sync.run(schema="item string")
    assert sync.rows("item") == []


def test_a_current_state_by_key(sync: Sync) -> None:
    sync.write(0, {"item": "a"}, {"item": "b"}, key="x")
    sync.write(1, {"item": "c"}, key="y")
    sync.run(rows=replace(JSON, is_changes=True))
    assert sync.rows("_key", "item") == [("x", "b"), ("y", "c")]
    sync.write(0, None, key="x")
    sync.write(1, {"item": "d"}, key="y")
    sync.run()
    assert sync.rows("_key", "item") == [("y", "d")]


def test_a_version_is_found_by_offset_and_small_files_are_compacted(sync: Sync) -> None:
    for number in range(3):
        sync.write(0, {"item": f"a{number}"})
        sync.write(1, {"item": f"b{number}"})
        sync.run(compact_every=3)
    topic_partition = TopicPartition(sync.plan.topic, 0)
    version = find_version(sync.table, {topic_partition: 1})
    assert sync.rows("item", version=version.id) == [("a0",), ("a1",), ("b0",), ("b1",)]
    assert len(sync.table.files()) == 1
    assert len(sync.rows("item")) == 6
    with pytest.raises(TableError, match="-0 ends at 3"):
        find_version(sync.table, {topic_partition: 3})
