"""The command line: `python -m benchmarks.spark [--quick] [--only NAME ...] [--version-row]`."""

import dataclasses
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import cyclopts
from pyspark.version import __version__ as pyspark_version
from rich.console import Console

from benchmarks import processes, report
from benchmarks.bench import QUICK, Bench
from benchmarks.machine import describe_machine, is_busy
from benchmarks.peers.ottla import Ottla
from benchmarks.peers.peer import Unavailable
from benchmarks.results import REFERENCE, SUBJECT
from benchmarks.spark import versions
from benchmarks.spark.connector import resolve
from benchmarks.spark.memory import measure_memory
from benchmarks.spark.reading import measure_filter, measure_reading
from benchmarks.spark.run import EACH_VERSION, FULL, SHORT, Run
from benchmarks.spark.spark import CORES, SETTINGS, start_spark
from benchmarks.spark.streaming import measure_streaming
from benchmarks.spark.writing import measure_writing
from pyspark_ottla.java import find_java

HERE = Path(__file__).parents[1]
CACHE = HERE / ".cache"
RESULTS = HERE / "RESULTS-SPARK.md"
INTRODUCTION = """\
# Results of the Spark part

Written by `make bench-spark`. `ottla` and `kafka` are the names of the two connectors in
`spark.read.format(...)`: this one, and the one of Apache Spark. They work with the same Ottla
broker in the same Spark, in turn, after a round that does not count. Every figure is the median of
its rounds, with the smallest and the largest in brackets; the ratio is the median of the ratios of
each round, and above 1 `ottla` is better. `kafka` reads all of a topic whatever the filter. The
filter is measured in a session that has used it a hundred times: until then Java compiles Spark's
planner, which takes more processor time than the query.
"""
BUSY = "Other work ran on the machine when this began: figures and verdicts are preliminary."
SCENARIOS = {
    # First: Spark reuses Python workers, and one that has written keeps pandas in memory.
    "memory": measure_memory,
    "reading": measure_reading,
    "filter": measure_filter,
    "writing": measure_writing,
    "streaming": measure_streaming,
}

Names = Annotated[list[str] | None, cyclopts.Parameter(consume_multiple=True)]


def main(
    *,
    quick: bool = False,
    only: Names = None,
    partition_gb: float | None = None,
    write: bool = False,
    version_row: bool = False,
) -> None:
    """Measures the Spark part, next to Spark's own connector if Maven Central is reachable.

    Parameters
    ----------
    quick
        One small round, to see that it works.
    only
        The scenarios to run: reading, filter, writing, streaming, memory.
    partition_gb
        Size of the partition for the memory measurement.
    write
        Write benchmarks/RESULTS-SPARK.md even after a quick or partial run.
    version_row
        Measure reading and writing, and write only the row of this Spark version.
    """
    if version_row:
        only = list(versions.SCENARIOS)
    load = f"{os.getloadavg()[0]:.1f}"
    unknown = set(only or ()) - set(SCENARIOS)
    if unknown:
        sys.exit(f"unknown scenario {', '.join(unknown)}; there are {', '.join(SCENARIOS)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    console = Console()
    CACHE.mkdir(exist_ok=True)
    remarks = [BUSY] if is_busy() else []
    formats, jars = _formats(console)
    facts = _facts(jars)
    size = SHORT if quick else EACH_VERSION if version_row else FULL
    if partition_gb is not None:
        size = dataclasses.replace(size, partition_gigabytes=partition_gb)
    spark = start_spark(jars, CACHE)
    with _broker(console) as bench:
        run = Run(size, formats, spark, bench, console.log)
        try:
            for name in only or SCENARIOS:
                SCENARIOS[name](run)
        finally:
            report.show(run.results, console)
            spark.stop()
    written_before = RESULTS.read_text() if RESULTS.exists() else ""
    if version_row:
        jar = jars[0].stem.rpartition("-")[2] if jars else "none"
        row = versions.row_of(run.results, pyspark_version, jar, load)
        RESULTS.write_text(versions.with_row(written_before, row))
    elif write or not (quick or only):
        document = report.as_markdown(run.results, facts, remarks, INTRODUCTION)
        RESULTS.write_text(versions.keep_section(document, written_before))


def _facts(jars: list[Path]) -> dict[str, str]:
    return describe_machine(CACHE) | {
        "Spark": f"{pyspark_version}, local[{CORES}]",
        "Java": str(find_java().version),
        "settings": ", ".join(f"{name}={value}" for name, value in SETTINGS.items()),
        "jars of kafka": ", ".join(jar.stem for jar in jars) or "none",
    }


def _formats(console: Console) -> tuple[list[str], list[Path]]:
    try:
        return [SUBJECT, REFERENCE], resolve(CACHE)
    except Unavailable as reason:
        console.log(f"Spark's own Kafka connector is left out: {reason}")
        return [SUBJECT], []


@contextmanager
def _broker(console: Console) -> Iterator[Bench]:
    processes.raise_open_files_limit()
    ottla = Ottla(warm_seconds=0)
    ottla.prepare(CACHE)
    directory = Path(tempfile.mkdtemp(prefix="run-", dir=CACHE))
    bench = Bench([ottla], [], QUICK, directory, console.log)
    try:
        yield bench
    finally:
        bench.close()
        shutil.rmtree(directory)


if __name__ == "__main__":
    cyclopts.run(main)
