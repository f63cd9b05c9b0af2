"""A sink renamed since the last run, with the same target: it continues.

It keeps its checkpoint, its record, and the id that identifies its batches.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from pyspark_ottla.pipeline.backfill_file import BackfillFile
from pyspark_ottla.pipeline.model import Pipeline
from pyspark_ottla.pipeline.record import Record, RecordFile
from pyspark_ottla.pipeline.run_lock import BACKFILL, find_runner
from pyspark_ottla.pipeline.shape import describe_sink

Value = TypeVar("Value")


def find_renamed(pipeline: Pipeline, record: Record) -> dict[str, str]:
    """Old names by new ones, where the match is unambiguous."""
    gone = [name for name in record.shapes if name not in pipeline.sinks]
    found = {}
    for name, sink in pipeline.sinks.items():
        before = [old for old in gone if record.shapes[old].sink == describe_sink(sink)]
        if name not in record.shapes and len(before) == 1:
            found[name] = before[0]
    return found


def adopt_renamed(pipeline: Pipeline, file: RecordFile) -> Record:
    """The record, with renamed sinks' entries under their new names.

    Only for checkpoints that this process can rename; the others are refused as new sinks.
    """
    record = file.read()
    if not file.is_local:
        return record
    for new, old in find_renamed(pipeline, record).items():
        before, after = (Path(pipeline.checkpoints, name) for name in (old, new))
        if before.is_dir() and not after.exists():
            _validate_no_backfill(pipeline)
            before.rename(after)
        elif before.exists() or not after.is_dir():
            continue  # Not that sink's checkpoint, or none.
        BackfillFile(pipeline).rename(old, new)
        record = _renamed(pipeline, record, old, new)
        file.write(record)
    return record


def _validate_no_backfill(pipeline: Pipeline) -> None:
    runner = find_runner(pipeline, BACKFILL)
    if runner is not None:
        reason = f"a sink was renamed, and a backfill of it runs, as process {runner}"
        raise pipeline.error(f"{reason}; wait for it")


def _renamed(pipeline: Pipeline, record: Record, old: str, new: str) -> Record:
    written = [replace(each, query=new) if each.query == old else each for each in record.written]
    known_as = record.sink_ids.get(old, f"{pipeline.name}-{old}")
    return replace(
        record,
        shapes=_moved(record.shapes, old, new),
        generations=_moved(record.generations, old, new),
        begins=_moved(record.begins, old, new),
        written=written,
        sink_ids=_moved(record.sink_ids, old, new) | {new: known_as},
    )


def _moved(values: Mapping[str, Value], old: str, new: str) -> dict[str, Value]:
    return {new if name == old else name: value for name, value in values.items()}
