"""A backfill with faults, next to its run: `driver.py BOOTSTRAP DIRECTORY CASE...`.

A case is `point:action`, as in the sink's kill matrix. Each has its own pipeline and topics, and
both the run and the backfill resume when this process is restarted with the same arguments. The
test sends the run's input once the run has begun.
"""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from tests.spark.sink.kill_matrix.driver import name_of, note_done, open_session, plan_fault

from pyspark_ottla.pipeline.backfill import Wanted, backfill_pipeline
from pyspark_ottla.pipeline.backfill_file import BackfillFile
from pyspark_ottla.pipeline.batch_writers import TopicWriter
from pyspark_ottla.pipeline.file import load_pipeline
from pyspark_ottla.pipeline.problems import PipelineError
from pyspark_ottla.pipeline.run import PipelineRun, run_pipeline
from pyspark_ottla.tables import committing

BEFORE = 20  # Records that exist when the run begins.
AFTER = 10  # Records that arrive then.
PORTION = 7  # Backfill records that are written at once.
STARTS_MAX = 4
TABLE_POINTS = ("table.after_files", "table.after_commit", "table.before_note")
FED_TIMEOUT_S = 240

PIPELINE = """\
name: {name}
sources:
  numbers: {{topic: {name}-in, format: json, schema: n int, start: latest}}
steps:
  rows: {{sql: select n from numbers}}
sinks:
  out: {{from: rows, {sink}}}
"""


def is_table(case: str) -> bool:
    return case.startswith("table.")


def main(bootstrap: str, directory: Path, cases: list[str]) -> None:
    from tests.spark.sink.kill_matrix.faults import FaultySource

    spark = open_session()
    spark.dataSource.register(FaultySource)
    TopicWriter.write = write_faulty  # type: ignore[method-assign]
    hook_tables()
    for case in cases:
        if not (directory / f"{name_of(case)}.done").exists():
            run_case(spark, bootstrap, directory, case)
    spark.stop()


def write_faulty(self: TopicWriter, frame: DataFrame, batch_id: int) -> None:
    writer = frame.write.format("ottla_faulty").options(**self.options)
    writer = writer.option("delivery", "exactly_once").option("batchId", str(batch_id))
    writer.mode("append").save()


def hook_tables() -> None:
    """Where the process that commits for a table dies."""
    from tests.spark.sink.kill_matrix.faults import planned_here

    def before(owner: Any, name: str, point: str) -> None:
        original = getattr(owner, name)

        def hooked(*arguments: Any, **named: Any) -> Any:
            if planned_here(point):
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*arguments, **named)

        setattr(owner, name, hooked)

    before(committing, "append_files", "table.after_files")
    before(committing, "remove_strays", "table.after_commit")
    before(BackfillFile, "advance", "table.before_note")


def run_case(spark: Any, bootstrap: str, directory: Path, case: str) -> None:
    name = name_of(case)
    path = directory / name / "pipeline.yaml"
    path.parent.mkdir(exist_ok=True)
    sink = "delta: table" if is_table(case) else f"topic: {name}"
    path.write_text(PIPELINE.format(name=name, sink=sink))
    pipeline = load_pipeline(path, bootstrap_servers=bootstrap)
    for _ in range(STARTS_MAX):
        run = PipelineRun(spark, pipeline, once=False)
        try:
            run.start()
            (directory / f"{name}.live").touch()
            plan_fault(directory, case)
            backfill_pipeline(spark, pipeline, Wanted(["out"], records_max=PORTION))
            wait_for(directory / f"{name}.fed")
            run.stop()
            run.wait()
            run_pipeline(spark, pipeline)
            break
        except PipelineError as error:
            print(f"{case}: {str(error)[:2000]}", flush=True)
            run.stop()
            try:
                run.wait()
            except PipelineError as other:
                print(f"{case}: the run: {str(other)[:2000]}", flush=True)
    else:
        sys.exit(f"{case}: failed {STARTS_MAX} times")
    note_done(directory, case)


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + FED_TIMEOUT_S
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} does not come"
        time.sleep(0.05)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
