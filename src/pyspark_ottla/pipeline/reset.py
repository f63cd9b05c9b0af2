"""Restarts a pipeline from any offset of its topics.

The checkpoints are set aside, sinks get new ids, and the next run begins where it is told. What was
written before stays; what is read again is written again.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ottla.client.wire.errors import WireError
from pyspark_ottla.pipeline.changes import with_record
from pyspark_ottla.pipeline.coverage import find_written
from pyspark_ottla.pipeline.model import Pipeline, SinkKind
from pyspark_ottla.pipeline.paths import has_scheme
from pyspark_ottla.pipeline.record import Record, RecordFile, Written
from pyspark_ottla.pipeline.run_lock import BACKFILL, RUN, find_runner
from pyspark_ottla.pipeline.sink_batches import abandon_sink
from pyspark_ottla.pipeline.source_offsets import find_offsets, offsets_as_json
from pyspark_ottla.pipeline.writers import query_names
from pyspark_ottla.stream_offsets import Offsets
from pyspark_ottla.tables.address import TableError


class Reset(NamedTuple):
    queries: list[str]
    starts: Mapping[str, Offsets]  # By source.
    set_aside: list[str]  # Directories.


def reset_pipeline(pipeline: Pipeline, start: str, sinks: Collection[str] = ()) -> Reset:
    """`start` is earliest, latest, an offset, or an ISO 8601 time; without `sinks`, resets all.

    Raises PipelineError if it is impossible, for example while the pipeline runs.
    """
    directory = Path(pipeline.checkpoints)
    if has_scheme(pipeline.checkpoints):
        raise pipeline.error(f"checkpoints at {directory} are not reached from here")
    for lock, what in ((RUN, "it runs"), (BACKFILL, "a backfill of it runs")):
        runner = find_runner(pipeline, lock)
        if runner is not None:
            raise pipeline.error(f"{what}, as process {runner}; stop it first")
    pipeline.validate_sinks(sinks)
    queries = list(sinks) or query_names(pipeline)
    for name in queries:
        _validate_sink(pipeline, name)
    starts = {
        name: find_offsets(pipeline, source, start) for name, source in pipeline.sources.items()
    }
    file = RecordFile(pipeline)
    record = file.read()
    written = [*record.written, *_abandon(pipeline, record, queries)]
    generations = dict(record.generations)
    set_aside = {}
    for name in queries:
        generations[name] = generations.get(name, 0) + 1
        if (directory / name).exists():
            set_aside[name] = f"{name}.before-reset-{generations[name]}"
    texts = {name: offsets_as_json(offsets) for name, offsets in starts.items()}
    shapes = {name: shape for name, shape in record.shapes.items() if name not in queries}
    begins = {name: begin for name, begin in record.begins.items() if name not in queries}
    record = replace(record, shapes=shapes, generations=generations, starts=texts)
    file.write(replace(record, begins=begins, written=written, set_aside=set_aside))
    file.read()  # Which renames them.
    return Reset(queries, starts, [str(directory / aside) for aside in set_aside.values()])


def _abandon(pipeline: Pipeline, record: Record, queries: Collection[str]) -> list[Written]:
    """What the queries have written, once none of their leftovers can still count."""
    running = with_record(pipeline, record)
    begun = [name for name in queries if Path(pipeline.checkpoints, name).is_dir()]
    try:
        for name in begun:
            abandon_sink(running, name)
        found = [find_written(running, record, name) for name in begun]
    except (WireError, TableError) as error:
        raise pipeline.error(str(error)) from error
    return [each for each in found if each is not None]


def _validate_sink(pipeline: Pipeline, name: str) -> None:
    sink = pipeline.sinks.get(name)
    if sink is not None and sink.kind is SinkKind.PARQUET and Path(sink.target).exists():
        reason = "Parquet remembers its batches in its own directory, and would leave new ones out"
        hint = f"move {sink.target} away or give another directory, then reset"
        raise pipeline.error(f"sink {name}: {reason}; {hint}", sink.line)
