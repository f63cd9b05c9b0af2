"""A Spark driver that writes streams with faults: `driver.py BOOTSTRAP DIRECTORY CASE...`.

A case is `point:action`. Each has its own query, topic, sink id and checkpoint; a failing query is
restarted. If this process is killed it is restarted too, with the same arguments, and continues
with the current case. OTTLA_MASTER says where Spark runs.
"""

import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.spark.deployments import SETTINGS

FILES = 2  # Each is a batch.
ROWS_PER_FILE = 6
STARTS_MAX = 3
LOCAL = "local[2,4]"  # Two threads; a task is tried four times.


def name_of(case: str) -> str:
    return case.replace(":", "-").replace(".", "-")


def rows() -> list[str]:
    return [f"{file}-{row}" for file in range(FILES) for row in range(ROWS_PER_FILE)]


def main(bootstrap: str, directory: Path, cases: list[str]) -> None:
    # Its hooks are for this process, not for tests that import the case names from here.
    from tests.spark.sink.kill_matrix.faults import FaultySource

    source = directory / "input"
    if not source.exists():
        source.mkdir()
        for file in range(FILES):
            lines = [f"{file}-{row}\n" for row in range(ROWS_PER_FILE)]
            (source / f"{file}.txt").write_text("".join(lines))
    spark = open_session()
    spark.dataSource.register(FaultySource)
    for case in cases:
        if not (directory / f"{name_of(case)}.done").exists():
            run_case(spark, bootstrap, directory, case)
    spark.stop()


def open_session() -> SparkSession:
    builder = SparkSession.builder.master(os.environ.get("OTTLA_MASTER", LOCAL))
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def run_case(spark: Any, bootstrap: str, directory: Path, case: str) -> None:
    plan_fault(directory, case)
    for _ in range(STARTS_MAX):
        try:
            run_query(spark, bootstrap, directory, name_of(case))
            break
        except Exception as error:
            print(f"{case}: {str(error)[:2000]}", flush=True)
    else:
        sys.exit(f"{case}: the query failed {STARTS_MAX} times")
    note_done(directory, case)


def plan_fault(directory: Path, case: str) -> None:
    """Once, however often the process starts."""
    faults, planned = Path(os.environ["OTTLA_FAULTS"]), directory / f"{name_of(case)}.planned"
    if planned.exists():
        return
    for leftover in ("fired", "broker-is-down"):
        (faults / leftover).unlink(missing_ok=True)
    planned.touch()
    temporary = faults / "next"
    temporary.write_text(case.replace(":", " "))
    temporary.rename(faults / "plan")


def note_done(directory: Path, case: str) -> None:
    if Path(os.environ["OTTLA_FAULTS"], "fired").exists():
        (directory / f"{name_of(case)}.fired").touch()
    (directory / f"{name_of(case)}.done").touch()


def run_query(spark: Any, bootstrap: str, directory: Path, name: str) -> None:
    lines = spark.readStream.schema("value string").option("maxFilesPerTrigger", 1)
    query = (
        lines.text(str(directory / "input"))
        .repartition(2)
        .writeStream.format("ottla_faulty")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", name)
        .option("sinkId", name)
        .option("checkpointLocation", str(directory / f"{name}.checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
