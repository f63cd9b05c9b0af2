"""How much memory the task takes that reads one partition: the same, however large it is."""

import threading
from collections.abc import Iterator
from pathlib import Path

from benchmarks import processes
from benchmarks.results import SUBJECT, Better, Requirement, Row
from benchmarks.spark.run import Run

PEAK_MAX = Requirement(value_max=300)
VALUE_SIZE = 1024
SMALL_SHARE = 0.1
POLL_S = 0.05


def measure_memory(run: Run) -> None:
    """Of Python workers; the kernel keeps the peak of each for as long as it lives."""
    gigabytes = run.size.partition_gigabytes
    for size in (gigabytes * SMALL_SHARE, gigabytes):
        rows = int(size * 1e9 / VALUE_SIZE)
        requirement = PEAK_MAX if size == gigabytes else Requirement()
        label = f"peak of the worker that reads {size:g} GB of one partition"
        row = Row("memory of a task", label, "MB", Better.LOWER, requirement)
        with run.filled_topic(rows, VALUE_SIZE, partitions=1) as topic, _Peak() as peak:
            found = run.read(SUBJECT, topic).selectExpr("sum(length(value))", "count(*)").first()
        assert found[1] == rows, f"{found[1]} of {rows} rows"
        run.results.record(row, SUBJECT, peak.bytes / 1e6)
        run.say(label)


class _Peak:
    """Looks at this process's Python workers until it ends."""

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
                    continue  # It has ended.


def _workers() -> Iterator[int]:
    """Processes of Python whose command is Spark's for workers."""
    for entry in Path("/proc").iterdir():
        try:
            if b"pyspark.daemon" in (entry / "cmdline").read_bytes():
                yield int(entry.name)
        except (OSError, ValueError):
            continue
