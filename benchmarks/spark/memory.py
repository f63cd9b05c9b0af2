"""The memory of a task that reads one partition: the same, however large the partition."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

from benchmarks import processes
from benchmarks.results import SUBJECT, Better, Requirement, Row
from benchmarks.spark.run import Run

PEAK_MAX = Requirement(value_max=150)
VALUE_SIZE = 1024
SMALL_SHARE = 0.1
POLL_S = 0.05


def measure_memory(run: Run) -> None:
    """The peak of Python workers, which the kernel keeps as long as each lives."""
    gigabytes = run.size.partition_gigabytes
    for size in (gigabytes * SMALL_SHARE, gigabytes):
        rows = int(size * 1e9 / VALUE_SIZE)
        label = f"peak of the worker that reads {size:g} GB of one partition"
        row = Row("memory of a task", label, "MB", Better.LOWER, PEAK_MAX)
        with run.filled_topic(rows, VALUE_SIZE, partitions=1) as topic, _Peak() as peak:
            found = run.read(SUBJECT, topic).selectExpr("sum(length(value))", "count(*)").first()
        assert found[1] == rows, f"{found[1]} of {rows} rows"
        run.results.record(row, SUBJECT, peak.bytes / 1e6)
        run.say(label)


class _Peak:
    """Samples this process's Python workers until it is stopped."""

    def __init__(self) -> None:
        self.bytes = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> "_Peak":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(POLL_S):
            for pid in _workers():
                try:
                    self.bytes = max(self.bytes, processes.peak_resident_bytes(pid))
                except (OSError, ValueError):
                    continue  # It exited.


def _workers() -> Iterator[int]:
    """The Python workers of this process's Spark, recognized by their command line."""
    for entry in Path("/proc").iterdir():
        try:
            if b"pyspark.daemon" in (entry / "cmdline").read_bytes() and _is_below(entry):
                yield int(entry.name)
        except (OSError, ValueError):
            continue


def _is_below(process: Path) -> bool:
    """Whether this process is an ancestor of it."""
    while process.name not in ("0", "1"):
        if int(process.name) == os.getpid():
            return True
        fields = (process / "stat").read_text().rpartition(")")[2].split()
        process = process.with_name(fields[1])
    return False
