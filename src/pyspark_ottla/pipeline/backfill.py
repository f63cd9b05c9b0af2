"""Replays a range of the sources into a sink, beside the continuing run, without duplicates.

Rows are identified by the offsets of their records. Of the requested range, three parts are left
out: what the run has read since it began, what it had read before a reset, and what was backfilled
before. The rest is divided into portions, decided before the first is written, each a batch of the
sink under its own id. So a backfill that dies continues where it was, and the sink recognizes a
portion that it already has.

A table with a key and `order-by` is written whatever it has: a row replaces one that is not newer.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pyspark_ottla.pipeline.backfill_file import Backfill, BackfillFile
from pyspark_ottla.pipeline.batch_writers import TopicWriter, table_writer
from pyspark_ottla.pipeline.changes import Remembered, with_fields, with_record
from pyspark_ottla.pipeline.coverage import find_begins, live_stretches
from pyspark_ottla.pipeline.frames import FrameError, build_frames
from pyspark_ottla.pipeline.model import TABLES, Pipeline, Sink, SinkKind, Source
from pyspark_ottla.pipeline.paths import has_scheme
from pyspark_ottla.pipeline.problems import PipelineError, Problem
from pyspark_ottla.pipeline.record import RecordFile, Written
from pyspark_ottla.pipeline.run_lock import BACKFILL, RunLock
from pyspark_ottla.pipeline.samples import batch_options, columns_of
from pyspark_ottla.pipeline.shape import Shape
from pyspark_ottla.pipeline.source_offsets import find_offsets, offsets_as_json
from pyspark_ottla.pipeline.spark_errors import describe_error, may_pass
from pyspark_ottla.pipeline.stretches import Stretch, between, overlap, subtract
from pyspark_ottla.pipeline.topics import is_compacted
from pyspark_ottla.pipeline.validate import validate_pipeline
from pyspark_ottla.pipeline.writers import (
    DEAD_LETTER,
    as_records,
    dead_letter_options,
    query_names,
    query_target,
    sink_id,
    topic_options,
)
from pyspark_ottla.sink.options import SINK_ID_CHARACTERS_MAX
from pyspark_ottla.stream_offsets import Offsets
from pyspark_ottla.tables.address import TableError

RECORDS_MAX = 1_000_000  # Default size of a portion.

_ATTEMPTS_MAX = 5


@dataclass(frozen=True)
class Wanted:
    """A user's request."""

    sinks: Collection[str]
    start: str = "earliest"
    end: str = "latest"
    records_max: int = RECORDS_MAX
    is_emptied: bool = False  # Whether rows written before the last reset are gone.


class Step(NamedTuple):
    """One portion to write."""

    query: str
    target: str
    number: int  # From 1.
    portions: int  # In the whole backfill.
    records: int  # In this portion.


@dataclass
class Summary:
    written: dict[str, list[Stretch]]  # By query.
    left_out: dict[str, list[Stretch]]  # Already there.


Watch = Callable[[Step], None]


def backfill_pipeline(
    spark: SparkSession,
    pipeline: Pipeline,
    wanted: Wanted,
    watch: Watch = lambda _: None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Summary:
    """Raises PipelineError if it is impossible; an unfinished one continues at the next call."""
    if has_scheme(pipeline.checkpoints):
        reason = f"checkpoints at {pipeline.checkpoints} are not reached from here"
        raise pipeline.error(f"{reason}, so what the run has read is not known")
    lock = RunLock(pipeline, name=BACKFILL)
    lock.take()
    try:
        return _Backfilling(spark, pipeline, wanted, watch, is_stopped).run()
    finally:
        lock.give_back()


@dataclass
class _Backfilling:
    spark: SparkSession
    pipeline: Pipeline
    wanted: Wanted
    watch: Watch
    is_stopped: Callable[[], bool]

    def __post_init__(self) -> None:
        self._record = RecordFile(self.pipeline).read()
        self.pipeline = with_fields(with_record(self.pipeline, self._record), self._record)
        self._file = BackfillFile(self.pipeline)
        self._summary = Summary({}, {})

    def run(self) -> Summary:
        pipeline, wanted = self.pipeline, self.wanted
        shapes = self._validate()
        sources = pipeline.sources.items()
        starts = {name: find_offsets(pipeline, each, wanted.start) for name, each in sources}
        ends = {name: find_offsets(pipeline, each, wanted.end) for name, each in sources}
        queries = [
            query for name in wanted.sinks for query in (name, *self._refusing(shapes[name]))
        ]
        for query in dict.fromkeys(queries):
            self._finish_what_was_begun(query)
            stretches = [
                part for name in starts for part in between(name, starts[name], ends[name])
            ]
            left = self._left(query, stretches, ends)
            if left and not self.is_stopped():
                target = query_target(pipeline, query)
                self._write(self._file.add(query, target, left, wanted.records_max))
        return self._summary

    def _validate(self) -> dict[str, Shape]:
        """Raises PipelineError for sinks that cannot be backfilled."""
        self.pipeline.validate_sinks(self.wanted.sinks)
        frames = validate_pipeline(self.spark, self.pipeline)
        remembered = Remembered(self.spark, self.pipeline, frames)
        remembered.validate()
        problems = [
            Problem(self.pipeline.sinks[name].line, f"sink {name}: {reason}")
            for name in self.wanted.sinks
            for reason in find_refusals(self.pipeline.sinks[name], remembered.shapes[name])
        ]
        problems = problems or list(self._compacted()) or list(self._unknown())
        if problems:
            raise PipelineError(self.pipeline.path, problems)
        return remembered.shapes

    def _compacted(self) -> Iterator[Problem]:
        for name in self.wanted.sinks:
            sink = self.pipeline.sinks[name]
            if sink.kind is SinkKind.TOPIC and sink.target and is_compacted(self.pipeline, sink):
                reason = f"topic {sink.target} is compacted, and an older value would replace"
                hint = "`ottla pipeline reset` reads from any offset"
                yield Problem(sink.line, f"sink {name}: {reason} a newer one of its key; {hint}")

    def _unknown(self) -> Iterator[Problem]:
        for name in self.wanted.sinks:
            if find_begins(self.pipeline, self._record, name) is not None:
                continue
            reason = "it has not run, and its first run may read the range itself; run it first"
            if RecordFile(self.pipeline).has_begun(name):
                reason = "it first ran with a version that did not write down where it began"
            yield Problem(self.pipeline.sinks[name].line, f"sink {name}: {reason}")

    def _refusing(self, shape: Shape) -> list[str]:
        """The queries that write rows refused on the way to the sink."""
        passed = {*shape.steps, *(source[0] for source in shape.sources)}
        refusing = [name for name in query_names(self.pipeline) if name.startswith(DEAD_LETTER)]
        return [name for name in refusing if name.removeprefix(DEAD_LETTER) in passed]

    def _left(
        self, query: str, stretches: list[Stretch], partitions: Mapping[str, Offsets]
    ) -> list[Stretch]:
        """What is not in the sink and will not get there by itself."""
        sink = self.pipeline.sinks.get(query)
        if sink is not None and sink.key and sink.kind in TABLES:
            return stretches
        begins = find_begins(self.pipeline, self._record, query) or {}
        covered = live_stretches(begins, partitions) + self._covered_before(query)
        self._summary.left_out[query] = overlap(stretches, covered)
        return subtract(stretches, covered)

    def _covered_before(self, query: str) -> list[Stretch]:
        """By the query before a reset, unless those rows are gone, and by backfills."""
        target = query_target(self.pipeline, query)
        generation = self.pipeline.generations.get(query, 0)
        written: list[Written | Backfill] = [
            each
            for each in self._file.read()
            if each.generation == generation or not self.wanted.is_emptied
        ]
        if not self.wanted.is_emptied:
            written += self._record.written
        return [
            part
            for each in written
            if (each.query, each.target) == (query, target)
            for part in each.stretches
        ]

    def _finish_what_was_begun(self, query: str) -> None:
        for each in self._file.read():
            if each.query == query and not each.is_done:
                self._write(each)

    def _write(self, backfill: Backfill) -> None:
        portions = backfill.portions
        for index in range(backfill.done, len(portions)):
            if self.is_stopped():
                return
            self._write_portion(backfill, index, portions[index])
            backfill = self._file.advance(backfill)
            self._summary.written.setdefault(backfill.query, []).extend(portions[index])
            records = sum(part.length for part in portions[index])
            number = index + 1
            self.watch(Step(backfill.query, backfill.target, number, len(portions), records))

    def _write_portion(self, backfill: Backfill, index: int, portion: list[Stretch]) -> None:
        for attempt in range(_ATTEMPTS_MAX):
            try:
                frames = build_frames(
                    self.spark,
                    self.pipeline,
                    open_source=lambda source: self._open(source, portion),
                )
                query, name = backfill.query, _sink_id(self.pipeline, backfill)
                if query in self.pipeline.sinks:
                    sink = self.pipeline.sinks[query]
                    write_batch(self.pipeline, sink, frames.good[sink.input], name, index)
                else:
                    options = dead_letter_options(self.pipeline, query) | {"sinkId": name}
                    frame = frames.bad[query.removeprefix(DEAD_LETTER)]
                    TopicWriter(options).write(frame, index)
                return
            except FrameError as error:
                raise PipelineError(self.pipeline.path, [error.problem]) from error
            except TableError as error:
                raise self.pipeline.error(f"{backfill.query}: {error}") from error
            except PySparkException as error:
                if attempt + 1 < _ATTEMPTS_MAX and may_pass(error):
                    continue
                message = f"{backfill.query}: {describe_error(error).message}"
                raise self.pipeline.error(message) from error

    def _open(self, source: Source, portion: list[Stretch]) -> DataFrame:
        own = [each for each in portion if each.source == source.name]
        if not own:
            return self.spark.createDataFrame([], columns_of(self.pipeline, source))
        options = batch_options(self.pipeline, source) | _range_options(own)
        for name in ("subscribe", "subscribePattern"):
            options.pop(name, None)
        return self.spark.read.format("ottla").options(**options).load()


def find_refusals(sink: Sink, shape: Shape) -> list[str]:
    """Why a sink cannot be backfilled."""
    if shape.state:
        reason = "its steps aggregate, join or keep state, so part of the records would give other"
        return [f"{reason} rows than all of them; use `ottla pipeline reset --from`"]
    if sink.kind is SinkKind.PARQUET:
        reason = "Spark reads from a Parquet directory only what its own query wrote there"
        return [f"{reason}, so a backfill cannot add to it; use delta or iceberg"]
    if sink.kind is SinkKind.CONSOLE:
        return ["the console keeps nothing; `ottla pipeline preview` shows rows"]
    if sink.kind in TABLES and sink.key and sink.deleted:
        reason = "a row that was removed since would come back"
        return [f"{reason}: start a table with `deleted` over, with `ottla pipeline reset`"]
    if sink.kind in TABLES and sink.key and not sink.order_by:
        reason = "an older row would replace a newer one of the same key"
        return [f"{reason}; give order-by, the column that tells which is newer"]
    return []


def write_batch(pipeline: Pipeline, sink: Sink, frame: DataFrame, name: str, number: int) -> None:
    """Idempotent for the same number."""
    if sink.kind is SinkKind.TOPIC:
        options = topic_options(pipeline, sink)
        if "sinkId" in options:
            options["sinkId"] = name
        TopicWriter(options).write(as_records(frame, sink), number)
        return
    writer = table_writer(sink, name)
    replace(writer, keeps_newer=bool(sink.key)).write(frame, number)


def _sink_id(pipeline: Pipeline, backfill: Backfill) -> str:
    sink = pipeline.sinks.get(backfill.query)
    own = (
        dead_letter_options(pipeline, backfill.query)["sinkId"]
        if sink is None
        else sink_id(pipeline, sink)
    )
    suffix = f"-b{backfill.number}"
    return own[: SINK_ID_CHARACTERS_MAX - len(suffix)] + suffix


def _range_options(stretches: list[Stretch]) -> dict[str, str]:
    """Each partition occurs once in a portion."""
    assigned: dict[str, list[int]] = {}
    for each in stretches:
        assigned.setdefault(each.topic, []).append(each.partition)
    return {
        "assign": json.dumps(assigned),
        "startingOffsets": offsets_as_json(
            {each.topic_partition: each.start for each in stretches}
        ),
        "endingOffsets": offsets_as_json({each.topic_partition: each.end for each in stretches}),
    }
