"""What a pipeline's next run would do with each of its sinks."""

from dataclasses import dataclass
from typing import Any

from pyspark_ottla.pipeline.changes import Remembered, with_record
from pyspark_ottla.pipeline.checkpoint import read_checkpoint
from pyspark_ottla.pipeline.evolution import take_added
from pyspark_ottla.pipeline.lag import count_lag
from pyspark_ottla.pipeline.model import Pipeline
from pyspark_ottla.pipeline.record import RecordFile
from pyspark_ottla.pipeline.renames import find_renamed
from pyspark_ottla.pipeline.shape import Change
from pyspark_ottla.pipeline.validate import validate_pipeline, validate_topics


@dataclass(frozen=True)
class Forecast:
    sink: str
    next_run: str
    changes: list[Change]

    @property
    def is_possible(self) -> bool:
        return all(change.is_safe for change in self.changes)

    def as_dict(self) -> dict[str, Any]:
        changes = [{"change": each.message, "safe": each.is_safe} for each in self.changes]
        return {"sink": self.sink, "next_run": self.next_run, "changes": changes}


def forecast(spark: Any, pipeline: Pipeline) -> list[Forecast]:
    """Raises PipelineError for an invalid pipeline."""
    record = RecordFile(pipeline, spark).read()
    pipeline = with_record(pipeline, record)
    validate_topics(pipeline)
    pipeline, _ = take_added(pipeline, record)
    frames = validate_pipeline(spark, pipeline)
    remembered = Remembered(spark, pipeline, frames)
    changes = remembered.find_changes()
    return [
        Forecast(name, _next_run(pipeline, remembered, name), changes.get(name, []))
        for name in pipeline.sinks
    ]


def _next_run(pipeline: Pipeline, remembered: Remembered, sink: str) -> str:
    target = pipeline.sinks[sink].target or "the console"
    old = find_renamed(pipeline, remembered.record).get(sink)
    if old is not None and remembered.has_checkpoint(old):
        return f"continues where sink {old} stopped, into {target}"
    if not remembered.has_checkpoint(sink):
        starts = {source.start for source in pipeline.sources.values()}
        return f"starts at {' and '.join(sorted(starts))}, into {target}"
    reached = read_checkpoint(pipeline, sink)
    if reached is None:
        return f"continues from its checkpoint, into {target}"
    lag = count_lag(pipeline, reached)
    records = "" if lag is None else f" with {lag} record{'' if lag == 1 else 's'} to read"
    return f"continues after batch {reached.batch_id}{records}, into {target}"
