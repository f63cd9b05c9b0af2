"""A pipeline changed after it has run: what its checkpoints are still good for."""

from dataclasses import replace
from typing import Any

from pyspark_ottla.pipeline.evolution import Added, with_added
from pyspark_ottla.pipeline.frames import Frames
from pyspark_ottla.pipeline.model import Pipeline
from pyspark_ottla.pipeline.problems import PipelineError, Problem
from pyspark_ottla.pipeline.record import Record, RecordFile
from pyspark_ottla.pipeline.renames import find_renamed
from pyspark_ottla.pipeline.shape import Change, Shape, describe_query, find_changes

Begins = dict[str, dict[str, str]]  # JSON offsets by query and source.
Changes = dict[str, list[Change]]  # By sink.


class Remembered:
    """The record of a pipeline, and what this run will write to it."""

    def __init__(self, spark: Any, pipeline: Pipeline, frames: Frames) -> None:
        self._pipeline = pipeline
        self._file = RecordFile(pipeline, spark)
        self.record = self._file.read()
        self.shapes: dict[str, Shape] = {
            sink.name: describe_query(spark, pipeline, sink, frames.good[sink.input])
            for sink in pipeline.sinks.values()
        }

    def find_changes(self) -> Changes:
        """For sinks with a checkpoint to continue from, and for new ones that replace others."""
        found: Changes = {}
        for name, shape in self.shapes.items():
            before = self.record.shapes.get(name)
            if before is None:
                found[name] = self._renamed(name, shape)
            elif self._file.has_checkpoint(name):
                found[name] = find_changes(before, shape)
        return found

    def has_checkpoint(self, sink: str) -> bool:
        return self._file.has_checkpoint(sink)

    def validate(self) -> None:
        """Raises PipelineError for what cannot continue."""
        problems = [
            Problem(self._pipeline.sinks[name].line, f"sink {name}: {change.message}; {_ADVICE}")
            for name, changes in self.find_changes().items()
            for change in changes
            if not change.is_safe
        ]
        if problems:
            raise PipelineError(self._pipeline.path, problems)

    def write(self, begins: Begins, added: Added) -> None:
        """`begins` says where the queries begin that have read nothing yet."""
        # Starts apply to queries that begin now; queries added later begin where the file says.
        have_begun = all(map(self._file.has_checkpoint, self.shapes))
        starts = {} if have_begun else self.record.starts
        shapes = self.record.shapes | self.shapes
        begun = self.record.begins | begins
        record = replace(self.record, shapes=shapes, starts=starts, begins=begun)
        self._file.write(replace(record, added=record.added | added))

    def _renamed(self, sink: str, shape: Shape) -> list[Change]:
        old = find_renamed(self._pipeline, self.record).get(sink)
        if old is not None and self._file.is_local and self._file.has_checkpoint(old):
            goes_on = Change(f"it was sink {old}, and continues from that checkpoint", is_safe=True)
            return [goes_on, *find_changes(self.record.shapes[old], shape)]
        for name, before in self.record.shapes.items():
            if name not in self.shapes and before.sink == shape.sink:
                target = f"{shape.sink['kind']} {shape.sink['target']}"
                message = f"it writes to {target}, as sink {name} did, which is gone"
                return [Change(f"{message}: it would write all of it again", is_safe=False)]
        return []


_ADVICE = (
    "change it back, or give --accept-changes to go on from the checkpoint all the same, or begin"
    " anew with `ottla pipeline reset`"
)


def with_record(pipeline: Pipeline, record: Record) -> Pipeline:
    """The pipeline with the sink ids and source starts from its record."""
    sources = {
        name: replace(source, start=record.starts.get(name, source.start))
        for name, source in pipeline.sources.items()
    }
    return replace(
        pipeline, sources=sources, generations=record.generations, sink_ids=record.sink_ids
    )


def with_fields(pipeline: Pipeline, record: Record) -> Pipeline:
    """The pipeline with the fields taken by earlier runs."""
    known = {name for name, source in pipeline.sources.items() if source.takes_added}
    return with_added(pipeline, {name: record.added.get(name, {}) for name in known})
