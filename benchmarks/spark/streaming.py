"""How long a micro-batch from topic to topic takes, while records come all the time."""

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import processes
from benchmarks.results import SUBJECT, Better, Requirement, Row
from benchmarks.spark.run import Run

MEDIAN_MAX = Requirement(value_max=300)
ROWS_PER_SECOND = 4_000
WARM_MICRO_BATCHES = 10
POLL_S = 0.1
SECONDS_MAX = 240
PARTS = ("latestOffset", "queryPlanning", "walCommit", "addBatch", "commitOffsets")


def measure_streaming(run: Run) -> None:
    for sink in run.formats:
        guarantee = "exactly once" if sink == SUBJECT else "at least once"
        progress = _run_query(run, sink)
        durations = [item["durationMs"] for item in progress]
        row = Row("micro-batch, topic to topic", "median", "ms", Better.LOWER, MEDIAN_MAX)
        run.results.record(row, sink, _median(durations, "triggerExecution"))
        for part in PARTS:
            part_row = Row(row.scenario, f"{part}, median", "ms", Better.LOWER)
            run.results.record(part_row, sink, _median(durations, part))
        run.say(f"micro-batches to {sink}, {guarantee}")


def _median(durations: list[dict[str, int]], part: str) -> float:
    return statistics.median(item.get(part, 0) for item in durations)


def _run_query(run: Run, kind: str) -> list[Any]:
    """The progress of each micro-batch with rows, after the first ones."""
    directory = Path(tempfile.mkdtemp(prefix="stream-"))
    with run.topic() as source, run.topic() as target:
        feed = _start_feed(run.address, source, directory)
        query = _start_query(run, kind, source, target, directory / "checkpoint")
        try:
            return _wait_for_progress(query, run.size.micro_batches)
        finally:
            query.stop()
            processes.stop(feed)
            shutil.rmtree(directory)


def _start_feed(address: str, topic: str, directory: Path) -> Any:
    command = [sys.executable, "-m", "benchmarks.spark.feed", address, topic, str(ROWS_PER_SECOND)]
    return processes.spawn(command, directory / "feed.log")


def _start_query(run: Run, kind: str, source: str, target: str, checkpoint: Path) -> Any:
    server = {"kafka.bootstrap.servers": run.address}
    rows = run.spark.readStream.format(kind).options(subscribe=source, **server).load()
    writer = rows.select("key", "value").writeStream.format(kind).options(**server)
    writer = writer.options(topic=target, checkpointLocation=str(checkpoint))
    if kind == SUBJECT:
        writer = writer.option("sinkId", target)
    return writer.start()


def _wait_for_progress(query: Any, wanted: int) -> list[Any]:
    deadline = time.monotonic() + SECONDS_MAX
    seen: dict[int, Any] = {}
    while time.monotonic() < deadline:
        assert query.exception() is None, query.exception()
        seen |= {item["batchId"]: item for item in query.recentProgress if item["numInputRows"]}
        if len(seen) >= WARM_MICRO_BATCHES + wanted:
            return list(seen.values())[WARM_MICRO_BATCHES:]
        time.sleep(POLL_S)
    raise TimeoutError(f"{len(seen)} micro-batches in {SECONDS_MAX} s")
