"""`ottla pipeline backfill`: replay a range into a sink, beside the run, and no row twice."""

import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.cli.errors import UsageError
from ottla.cli.output import print_json, print_line, print_now
from ottla.cli.parameters import AsJson, Flag
from ottla.cli.pipelines.options import DEFAULT_OPTIONS, PipelineOptions

if TYPE_CHECKING:
    from pyspark_ottla.pipeline.backfill import Step, Summary
    from pyspark_ottla.pipeline.model import Pipeline


def backfill(
    file: Path,
    /,
    *,
    from_: str = "earliest",
    to: str = "latest",
    into: list[str] | None = None,
    max_records: int = 1_000_000,
    emptied: Flag = False,
    options: PipelineOptions = DEFAULT_OPTIONS,
    as_json: AsJson = False,
) -> None:
    """Replay a range of the topics into a sink that has run, without duplicates.

    Records are identified by offset: those that the sink already has, or gets as it runs, are
    skipped. The pipeline may keep running. An interrupted backfill resumes when run again.

    Args:
        file: The pipeline, in YAML.
        from_: Where the range begins: earliest, an offset, or a time such as 2026-01-31T12:00:00Z.
        to: Where it ends, before that offset or time; latest is what there is now.
        into: The sink; may be repeated, and omitted if there is only one.
        max_records: Approximate number of records to write at once.
        emptied: The target was emptied when the pipeline was last reset, so what was written
            before does not count.
    """
    if max_records < 1:
        raise UsageError("--max-records is a whole number from 1 on")
    pipeline = options.load(file)
    if options.remote:
        raise UsageError("a backfill runs with --master, not with --remote")
    sinks = _sinks(pipeline, into)
    stopping = threading.Event()
    with options.session(pipeline) as session:
        from pyspark_ottla.pipeline.backfill import Wanted, backfill_pipeline

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopping.set())
        wanted = Wanted(sinks, from_, to, max_records, emptied)
        done = backfill_pipeline(session, pipeline, wanted, _tell, stopping.is_set)
    _print_end(pipeline, done, as_json=as_json, stopped=stopping.is_set())


def _sinks(pipeline: "Pipeline", into: list[str] | None) -> list[str]:
    if into:
        return into
    if len(pipeline.sinks) > 1:
        raise UsageError(f"give --into, one of {', '.join(pipeline.sinks)}")
    return list(pipeline.sinks)


def _tell(step: "Step") -> None:
    number = f"{step.number} of {step.portions}"
    print_now(f"{step.query}: {number}, {step.records} records into {step.target}", sys.stderr)


def _print_end(pipeline: "Pipeline", done: "Summary", *, as_json: bool, stopped: bool) -> None:
    if as_json:
        written = {name: [each._asdict() for each in found] for name, found in done.written.items()}
        left = {name: [each._asdict() for each in found] for name, found in done.left_out.items()}
        document = {"pipeline": pipeline.name, "stopped": stopped, "written": written}
        print_json(document | {"left_out": left})
        return
    for name, found in done.left_out.items():
        for each in found:
            print_line(f"{name}: {each} skipped: written before, or left to the run")
    for name, parts in done.written.items():
        for each in parts:
            print_line(f"{name}: {each} is written")
    if stopped:
        print_line("stopped; run the same command again to continue")
    elif not done.written:
        print_line("nothing to backfill")
