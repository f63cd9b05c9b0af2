from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.pyspark_ottla.tables.test_compaction import append
from tests.pyspark_ottla.tables.written import parquet_files, row, rows_of, write_files

from pyspark_ottla.tables.batch import Batch
from pyspark_ottla.tables.compaction import Compaction
from pyspark_ottla.tables.maintenance import Maintenance
from pyspark_ottla.tables.table import Table, TableChanged

EAGER = Compaction(1 << 20, files_min=2)


@dataclass
class Clock:
    """A pass takes as long as `pass_s` says."""

    now_s: float = 0.0
    pass_s: float = 1.0
    looks: int = 0

    def __call__(self) -> float:
        self.looks += 1
        if self.looks > 1:
            self.now_s += self.pass_s
        return self.now_s


@dataclass
class Passes:
    """A fake table that counts calls."""

    address: str = "delta:/orders"
    done: list[str] = field(default_factory=list)
    error: Exception | None = None

    def compact_some(self, _: Compaction) -> int:
        self.done.append("compact")
        if self.error is not None:
            raise self.error
        return 0

    def vacuum(self, _: int, *, dry_run: bool) -> None:
        assert not dry_run
        self.done.append("vacuum")


def run(maintenance: Maintenance, table: Any, clock: Clock) -> None:
    clock.looks = 0
    maintenance.run_if_due(table)


def test_files_are_few_and_strays_and_old_versions_gone_after_a_pass(table: Table) -> None:
    for number in range(4):
        append(table, number, f"item-{number}")
    write_files(table, Batch("sink", 9), row("stray"), run="stray")
    Maintenance(0, 10, EAGER).run_if_due(table)
    assert len(parquet_files(table)) == len(table.files()) == 1
    assert [line["item"] for line in rows_of(table)] == [f"item-{number}" for number in range(4)]
    last = table.claim("sink").last
    assert last is not None
    assert last.batch == Batch("sink", 3)


def test_a_writer_goes_on_after_each_pass(table: Table) -> None:
    maintenance = Maintenance(0, 100, EAGER)
    for number in range(6):
        append(table, number, f"item-{number}")
        maintenance.run_if_due(table)
    assert [line["item"] for line in rows_of(table)] == [f"item-{number}" for number in range(6)]
    assert len(table.files()) == 1


def test_maintenance_has_its_share_of_the_time() -> None:
    clock, table = Clock(), Passes()
    maintenance = Maintenance(1, 10, clock=clock)
    run(maintenance, table, clock)
    assert table.done == ["compact", "vacuum"]
    clock.now_s += 8.9
    run(maintenance, table, clock)
    assert table.done == ["compact", "vacuum"]
    clock.now_s += 0.2
    run(maintenance, table, clock)
    assert table.done == ["compact", "vacuum", "compact"]
    clock.now_s += 3600
    run(maintenance, table, clock)
    assert table.done[3:] == ["compact", "vacuum"]


def test_what_another_writer_changed_waits_for_the_next_pass(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, table = Clock(), Passes(error=TableChanged("by another"))
    maintenance = Maintenance(1, 10, clock=clock)
    run(maintenance, table, clock)
    assert "delta:/orders is not maintained this time: by another" in caplog.text
    clock.now_s += 10
    table.error = None
    run(maintenance, table, clock)
    assert table.done == ["compact", "compact", "vacuum"]
