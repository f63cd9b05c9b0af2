from pathlib import Path

import pytest
from tests.cli.conftest import Ottla
from tests.pyspark_ottla.tables.written import SCHEMA, parquet_files, row, write_files

from pyspark_ottla.tables.batch import Batch
from pyspark_ottla.tables.table import Table, open_table

pytestmark = pytest.mark.process


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Three batches of one row each."""
    table = open_table(f"delta:{tmp_path}/orders")
    table.create(SCHEMA)
    for number in range(3):
        offsets = {"orders": {"0": (number, number + 1)}}
        ends = {"orders": {"0": number + 1}}
        batch = Batch("sync", number, "", 1, 0, offsets, ends)
        table.claim("sync").append(batch, write_files(table, batch, row(f"item-{number}")))
    return table


def test_versions(table: Table, ottla: Ottla) -> None:
    title, newest, *older = ottla("table", "versions", str(table.address)).output.splitlines()
    assert title.split() == ["VERSION", "TIME", "SINK", "BATCH", "ROWS", "BAD"]
    assert newest.split()[::2] == ["3", "sync", "1"]
    assert older[-1].split()[2:] == ["-", "-", "-", "-"]
    found = ottla("table", "versions", str(table.address), "--limit", "1", "--json").json
    assert [(line["version"], line["ends"]) for line in found] == [(3, {"orders": {"0": 3}})]


def test_at(table: Table, ottla: Ottla) -> None:
    address = str(table.address)
    assert ottla("table", "at", address, "--offset", "orders:0:1").output == "2\n"
    found = ottla("table", "at", address, "--offset", "orders:0:0", "--json").json
    assert (found["version"], found["ends"]) == (1, {"orders": {"0": 1}})
    beyond = ottla("table", "at", address, "--offset", "orders:0:3")
    assert beyond.errors == "ottla: the table does not reach so far: orders-0 ends at 3\n"
    assert beyond.exit_code == 1
    wrong = ottla("table", "at", address, "--offset", "orders:3")
    assert "not like orders:0:1234" in wrong.errors


def test_compact(table: Table, ottla: Ottla) -> None:
    assert ottla("table", "compact", str(table.address)).output == "3 files before, 1 now\n"
    assert ottla("table", "compact", str(table.address)).output == "1 files before, 1 now\n"


def test_a_vacuum_of_less_than_a_week_needs_to_be_forced(table: Table, ottla: Ottla) -> None:
    address = str(table.address)
    ottla("table", "compact", address)
    short = ["table", "vacuum", address, "--retention-hours", "0"]
    refused = ottla(*short)
    assert refused.exit_code == 2
    assert "add --force" in refused.errors
    assert len(ottla(*short, "--dry-run").output.splitlines()) == 3
    assert ottla("table", "vacuum", address).output == "removed 0 files\n"
    assert ottla(*short, "--force").output == "removed 3 files\n"
    assert len(parquet_files(table)) == 1


def test_no_table(tmp_path: Path, ottla: Ottla) -> None:
    missing = ottla("table", "versions", f"delta:{tmp_path}/none")
    assert missing.errors == f"ottla: there is no Delta table at {tmp_path}/none\n"
    wrong = ottla("table", "versions", "orders")
    assert "'orders' is not the address of a table" in wrong.errors


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--interval", "0"], "--interval 0.0 is not more than 0"),
        (["--max-records", "0"], "--max-records 0 is less than 1"),
        (["--master", "local[1]", "--remote", "sc://here"], "exclude each other"),
        (["--format", "avro"], "--format avro needs --schema"),
        (["--format", "avro", "--schema", "none.avsc"], "none.avsc: No such file"),
        (["--format", "string", "--schema", "a int"], "--schema has no meaning"),
        (["--format", "binary", "--new-fields"], "--new-fields is for --format json"),
    ],
)
def test_a_sync_that_makes_no_sense(
    arguments: list[str], reason: str, ottla: Ottla, bootstrap: str, tmp_path: Path
) -> None:
    target = f"delta:{tmp_path}/orders"
    outcome = ottla("table", "sync", "orders", "--to", target, *arguments, bootstrap=bootstrap)
    assert outcome.exit_code == 2
    assert reason in outcome.errors


def test_a_sync_without_a_broker(ottla: Ottla, tmp_path: Path) -> None:
    target = f"delta:{tmp_path}/orders"
    outcome = ottla("table", "sync", "orders", "--to", target, bootstrap="127.0.0.1:1")
    assert outcome.exit_code == 3
