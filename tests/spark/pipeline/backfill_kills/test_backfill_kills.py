"""Whatever dies while a backfill runs next to its pipeline: every row is there once.

The short run is part of every test run, the others of `make kill-matrix`.
"""

import json
from pathlib import Path

import pytest
from tests.broker_process import BrokerProcess
from tests.client.topics import create_topic
from tests.pyspark_ottla.rows import write
from tests.pyspark_ottla.sink.written import values
from tests.pyspark_ottla.tables.written import read
from tests.spark.pipeline.backfill_kills.driver import AFTER, BEFORE, TABLE_POINTS, is_table
from tests.spark.sink.kill_matrix.driver import LOCAL, name_of
from tests.spark.sink.kill_matrix.points import POINTS, TASK_POINTS
from tests.spark.sink.kill_matrix.test_kill_matrix import drive, driver_log, progress

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.transactions import list_open_ids
from ottla.records.builder import Record
from pyspark_ottla.tables.table import open_table

DRIVER = "tests.spark.pipeline.backfill_kills.driver"
SHORT = ["driver.in_commits:driver", "table.after_commit:driver"]


@pytest.mark.timeout(2400)
def test_a_row_is_written_once_beside_a_run(tmp_path: Path) -> None:
    run(tmp_path, SHORT)


@pytest.mark.kill_matrix
@pytest.mark.timeout(3600)
def test_a_row_is_written_once_when_the_driver_dies_at_any_point(tmp_path: Path) -> None:
    run(tmp_path, [f"{point}:driver" for point in (*POINTS, *TABLE_POINTS)])


@pytest.mark.kill_matrix
@pytest.mark.timeout(3600)
def test_a_row_is_written_once_when_a_task_or_the_broker_dies(tmp_path: Path) -> None:
    cases = [f"{point}:worker" for point in TASK_POINTS]
    run(tmp_path, cases + [f"{point}:broker" for point in POINTS])


def run(directory: Path, cases: list[str]) -> None:
    faults = directory / "faults"
    faults.mkdir()
    with BrokerProcess(directory) as broker:
        with Cluster(broker.bootstrap) as cluster:
            for case in cases:
                create_topic(cluster, 1, f"{name_of(case)}-in")
                send(cluster, case, 0, BEFORE)

        def feed() -> None:
            for path in directory.glob("*.live"):
                fed = path.with_suffix(".fed")
                if not fed.exists():
                    with Cluster(broker.bootstrap) as cluster:
                        send(cluster, path.stem, BEFORE, BEFORE + AFTER)
                    fed.touch()

        while not all((directory / f"{name_of(case)}.done").exists() for case in cases):
            done_before = progress(directory)
            drive(broker, directory, faults, cases, LOCAL, DRIVER, feed)
            assert progress(directory) > done_before, driver_log(directory)
        with Cluster(broker.bootstrap) as cluster:
            problems = {case: problem(cluster, directory, case) for case in cases}
    wrong = {case: what for case, what in problems.items() if what}
    assert not wrong, f"{wrong}\n{driver_log(directory)}"


def send(cluster: Cluster, case: str, start: int, end: int) -> None:
    records = [Record(value=json.dumps({"n": n}).encode()) for n in range(start, end)]
    write(cluster, TopicPartition(f"{name_of(case)}-in", 0), *records)


def problem(cluster: Cluster, directory: Path, case: str) -> str:
    name = name_of(case)
    if not (directory / f"{name}.fired").exists():
        return "nobody died"
    if left := list_open_ids(cluster, rf"ottla-sink\.{name}-out.*"):
        return f"left open: {left}"
    if is_table(case):
        table = open_table(f"delta:{directory / name / 'table'}")
        found = sorted(row["n"] for row in read(table))
    else:
        found = sorted(json.loads(value)["n"] for value in values(cluster, name))
    return "" if found == list(range(BEFORE + AFTER)) else f"{len(found)} rows: {found}"
