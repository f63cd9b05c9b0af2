"""Whatever dies at any point: a read_committed consumer sees every row once.

A short run is part of every test run; `make kill-matrix` runs the whole matrix.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.broker_process import BrokerProcess
from tests.pyspark_ottla.sink.written import values
from tests.spark.deployments import base_environment
from tests.spark.sink.kill_matrix.driver import LOCAL, name_of, rows
from tests.spark.sink.kill_matrix.points import POINTS, TASK_POINTS

from ottla.client.wire.cluster import Cluster
from ottla.client.wire.transactions import list_open_ids
from pyspark_ottla.sink.identity import pattern_of

POLL_S = 0.02
DRIVER_TIMEOUT_S = 800
CLUSTER = "local-cluster[2,1,1024]"  # Two executor processes with one thread each.

SHORT = ["driver.in_commits:driver", "task.after_writing:worker", "driver.in_decision:broker"]
# One driver process for all cases that do not kill it.
WHOLE = [f"{point}:{action}" for action in ("worker", "broker", "driver") for point in POINTS]


@pytest.mark.timeout(2400)
def test_a_row_is_written_once_whoever_dies(tmp_path: Path) -> None:
    run(tmp_path, SHORT)


@pytest.mark.kill_matrix
@pytest.mark.timeout(3600)
def test_a_row_is_written_once_whoever_dies_at_any_point(tmp_path: Path) -> None:
    run(tmp_path, WHOLE)


@pytest.mark.kill_matrix
@pytest.mark.timeout(2400)
def test_a_row_is_written_once_when_an_executor_dies(tmp_path: Path) -> None:
    run(tmp_path, [f"{point}:executor" for point in TASK_POINTS], master=CLUSTER)


def run(directory: Path, cases: list[str], master: str = LOCAL) -> None:
    faults = directory / "faults"
    faults.mkdir()
    with BrokerProcess(directory) as broker:
        while not all((directory / f"{name_of(case)}.done").exists() for case in cases):
            done_before = progress(directory)
            drive(broker, directory, faults, cases, master)
            assert progress(directory) > done_before, driver_log(directory)
        with Cluster(broker.bootstrap) as cluster:
            problems = {case: problem(cluster, directory, case) for case in cases}
    wrong = {case: what for case, what in problems.items() if what}
    assert not wrong, f"{wrong}\n{driver_log(directory)}"


def progress(directory: Path) -> int:
    """Started or finished cases; each start of the driver makes progress on one of them."""
    return len([*directory.glob("*.planned"), *directory.glob("*.done")])


def driver_log(directory: Path) -> str:
    return (directory / "driver.log").read_text()[-8000:]


def drive(
    broker: BrokerProcess,
    directory: Path,
    faults: Path,
    cases: list[str],
    master: str,
    program: str = "tests.spark.sink.kill_matrix.driver",
    look: Callable[[], None] = lambda: None,
) -> None:
    """Waits until the driver exits, by itself or killed; keeps calling `look`."""
    command = [sys.executable, "-m", program]
    environment = base_environment() | {"OTTLA_FAULTS": str(faults), "OTTLA_MASTER": master}
    with (directory / "driver.log").open("ab") as log:
        process = subprocess.Popen(
            [*command, broker.bootstrap, str(directory), *cases],
            stdout=log,
            stderr=log,
            env=environment,
            cwd=directory,
            start_new_session=True,
        )
    last, deadline = progress(directory), time.monotonic() + DRIVER_TIMEOUT_S
    try:
        while process.poll() is None:
            if progress(directory) != last:
                last, deadline = progress(directory), time.monotonic() + DRIVER_TIMEOUT_S
            assert time.monotonic() < deadline, f"the driver hangs\n{driver_log(directory)}"
            serve_broker_fault(broker, faults)
            look()
            time.sleep(POLL_S)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def serve_broker_fault(broker: BrokerProcess, faults: Path) -> None:
    """The driver removes `fired` before `broker-is-down`, so the latter is checked first."""
    fired, is_down = faults / "fired", faults / "broker-is-down"
    if is_down.exists():
        return
    try:
        _, action = fired.read_text().split()
    except FileNotFoundError:
        return
    if action == "broker":
        broker.kill()
        is_down.touch()
        broker.start()


def problem(cluster: Cluster, directory: Path, case: str) -> str:
    name = name_of(case)
    if not (directory / f"{name}.fired").exists():
        return "nobody died"
    if left := list_open_ids(cluster, pattern_of(name)):
        return f"left open: {left}"
    found = values(cluster, name)
    return "" if found == sorted(rows()) else f"{len(found)} rows: {found}"
