"""What is known of a pipeline without Spark: whether it runs, its progress, and its lag."""

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

from pyspark_ottla.pipeline.backfill_file import BackfillFile
from pyspark_ottla.pipeline.checkpoint import read_checkpoint
from pyspark_ottla.pipeline.lag import count_lag
from pyspark_ottla.pipeline.model import Pipeline
from pyspark_ottla.pipeline.run_lock import find_runner


@dataclass(frozen=True)
class SinkStatus:
    pipeline: str
    sink: str
    process: int | None  # Process id of the run.
    batch: int | None  # The last committed.
    committed: str | None  # When that was.
    lag: int | None  # Records; None if no broker answers.
    backfill: str | None  # Progress of an unfinished one, in portions: 2 of 5.


def find_status(pipeline: Pipeline) -> list[SinkStatus]:
    runner = find_runner(pipeline)
    backfills = {
        each.query: f"{each.done} of {len(each.portions)}"
        for each in BackfillFile(pipeline).read()
        if not each.is_done
    }
    found = []
    for sink in pipeline.sinks:
        batch = committed = lag = None
        reached = read_checkpoint(pipeline, sink)
        if reached is not None and reached.batch_id >= 0:
            batch = reached.batch_id
            commit = Path(pipeline.checkpoints, sink, "commits", str(batch))
            time = dt.datetime.fromtimestamp(commit.stat().st_mtime, dt.UTC)
            committed = time.strftime("%Y-%m-%dT%H:%M:%SZ")
            lag = count_lag(pipeline, reached)
        backfill = backfills.get(sink)
        found.append(SinkStatus(pipeline.name, sink, runner, batch, committed, lag, backfill))
    return found
