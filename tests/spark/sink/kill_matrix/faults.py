"""The data source `ottla_faulty`: the real one, in which a process dies at a given point.

Importing this puts hooks around steps of the protocol. The directory in OTTLA_FAULTS may hold a
file `plan` with a point and an action. The first process to reach that point renames it to `fired`,
so that it happens once, and performs the action:

    worker    kills itself, a Python process
    driver    kills the JVM that it belongs to: all of Spark, when that is local
    executor  the same, in a task of a cluster: an executor
    broker    asks the test to kill the broker, and continues once that is done
"""

import functools
import os
import signal
import time
from pathlib import Path
from typing import Any

from pyspark.sql.types import StructType

from pyspark_ottla.sink import decisions, prepare, two_phase, writers
from pyspark_ottla.sink.options import parse_sink_options
from pyspark_ottla.source import DefaultSource

BROKER_TIMEOUT_S = 240


class FaultyWriter(writers.StreamWriter):
    """Defined here because tasks import the module of their writer."""


class FaultyBatchWriter(writers.BatchWriter):
    """The same for batch writes."""


class FaultySource(DefaultSource):
    @classmethod
    def name(cls) -> str:
        return "ottla_faulty"

    def streamWriter(self, schema: StructType, overwrite: bool) -> FaultyWriter:  # noqa: N802
        return FaultyWriter(parse_sink_options(self.options, is_stream=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> FaultyBatchWriter:
        return FaultyBatchWriter(parse_sink_options(self.options, is_stream=False), schema)


def planned_here(point: str) -> str:
    """The action planned for the point, once; empty if there is none."""
    directory = Path(os.environ["OTTLA_FAULTS"])
    plan, fired = directory / "plan", directory / "fired"
    try:
        planned, action = plan.read_text().split()
        if planned != point:
            return ""
        plan.rename(fired)
    except FileNotFoundError:
        return ""  # Nothing is planned, or another process was first.
    return action


def reach(point: str) -> None:
    directory = Path(os.environ["OTTLA_FAULTS"])
    match planned_here(point):
        case "worker":
            os.kill(os.getpid(), signal.SIGKILL)
        case "driver" | "executor":
            os.kill(_jvm(), signal.SIGKILL)
            signal.pause()  # Until this process dies with the JVM.
        case "broker":
            _wait_for(directory / "broker-is-down")


def _jvm() -> int:
    pid = os.getpid()
    while Path(f"/proc/{pid}/comm").read_text().strip() != "java":
        pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return pid


def _wait_for(path: Path) -> None:
    deadline = time.monotonic() + BROKER_TIMEOUT_S
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} does not come"
        time.sleep(0.01)


def _hook(owner: Any, name: str, *, before: str | None = None, after: str | None = None) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def hooked(*arguments: Any, **named: Any) -> Any:
        if before:
            reach(before)
        result = original(*arguments, **named)
        if after:
            reach(after)
        return result

    setattr(owner, name, hooked)


def _hook_in_the_middle(owner: Any, name: str, point: str) -> None:
    """Commits the first transaction, passes the point, and commits them all."""
    original = getattr(owner, name)

    def commit_transactions(cluster: Any, transactions: list[Any]) -> None:
        original(cluster, transactions[:1])
        reach(point)
        original(cluster, transactions)

    setattr(owner, name, commit_transactions)


_hook(prepare, "_open", before="task.before_opening", after="task.after_opening")
_hook(prepare, "_write", after="task.after_writing")
_hook(writers, "_write_exactly_once", after="task.after_preparing")
_hook(decisions.Decisions, "claim", before="driver.before_claim", after="driver.before_decision")
_hook(decisions, "_call_all", before="driver.in_decision")
_hook(decisions.Claim, "decide", after="driver.after_decision")
_hook_in_the_middle(two_phase, "commit_transactions", "driver.in_commits")
_hook(two_phase, "_abort_strays", before="driver.after_commits")
_hook(writers, "_commit", after="driver.before_spark_commits")
