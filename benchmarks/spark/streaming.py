"""How long a micro-batch from topic to topic takes while records keep arriving."""

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import processes
from benchmarks.peers.peer import Flush
from benchmarks.results import SUBJECT, Better, Requirement, Row
from benchmarks.spark.run import Run

AT_LEAST = Requirement(ratio_min=1.0)
ROWS_PER_SECOND = 4_000
WARM_MICRO_BATCHES = 10
POLL_S = 0.1
SECONDS_MAX = 240
PARTS = ("latestOffset", "queryPlanning", "walCommit", "addBatch", "commitOffsets")


def measure_streaming(run: Run) -> None:
    """Records are on disk before they are acknowledged, as by default."""
    scenario = "micro-batch from topic to topic, ottla exactly once, kafka at least once"
    row = Row(scenario, "median", "ms", Better.LOWER, AT_LEAST)
    for index in range(run.size.rounds + 1):
        for kind in run.in_turn(index):
            durations = [item["durationMs"] for item in _run_query(run, kind)]
            if not index:
                continue
            run.results.record(row, kind, _median(durations, "triggerExecution"))
            for part in PARTS:
                part_row = Row(scenario, f"{part}, median", "ms", Better.LOWER)
                run.results.record(part_row, kind, _median(durations, part))
    run.say("micro-batches")


def _median(durations: list[dict[str, int]], part: str) -> float:
    return statistics.median(item.get(part, 0) for item in durations)


def _run_query(run: Run, kind: str) -> list[Any]:
    """The progress of each micro-batch with rows, without the first ones."""
    directory = Path(tempfile.mkdtemp(prefix="stream-"))
    with run.topic(flush=Flush.ACK) as source, run.topic(flush=Flush.ACK) as target:
        feed = _start_feed(run.address_of(Flush.ACK), source, directory)
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
    server = {"kafka.bootstrap.servers": run.address_of(Flush.ACK)}
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
