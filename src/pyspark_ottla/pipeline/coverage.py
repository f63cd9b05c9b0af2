"""Which offsets of its sources a query has written, or will write while it runs.

A running query reads everything from where it began: `begins` in the record, written before its
first batch. What it had written before a reset is in the record too.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from ottla.client.wire.cluster import TopicPartition
from pyspark_ottla.pipeline.changes import Begins
from pyspark_ottla.pipeline.checkpoint import read_checkpoint, read_first_start, read_planned
from pyspark_ottla.pipeline.model import Pipeline, Source
from pyspark_ottla.pipeline.record import Record, RecordFile, Written
from pyspark_ottla.pipeline.sink_batches import find_last_batch
from pyspark_ottla.pipeline.source_offsets import (
    find_first_offsets,
    offsets_as_json,
    offsets_from_json,
)
from pyspark_ottla.pipeline.stretches import ENDLESS, Stretch, between
from pyspark_ottla.pipeline.writers import query_names, query_target
from pyspark_ottla.stream_offsets import Offsets

_EARLIEST = "earliest"


def fix_begins(pipeline: Pipeline, file: RecordFile) -> tuple[Pipeline, Begins]:
    """The pipeline with fixed starts, and where its queries begin that have read nothing yet.

    A source that starts at the end of its topics starts at the end that they had at the first run,
    even if nothing arrived before the second.
    """
    new = [name for name in query_names(pipeline) if not file.has_begun(name)]
    if not new:
        return pipeline, {}
    record = file.read()
    before = [record.begins[name] for name in new if name in record.begins]
    sources = {
        name: _starting(each, [begins[name] for begins in before if name in begins])
        for name, each in pipeline.sources.items()
    }
    pipeline = replace(pipeline, sources=sources)
    offsets = {name: find_first_offsets(pipeline, each) for name, each in sources.items()}
    texts = {name: offsets_as_json(each) for name, each in offsets.items()}
    sources = {
        name: each if each.start == _EARLIEST else replace(each, start=texts[name])
        for name, each in sources.items()
    }
    return replace(pipeline, sources=sources), dict.fromkeys(new, texts)


def _starting(source: Source, begins: Collection[str]) -> Source:
    """At the lowest recorded offsets, if there are any."""
    options = {name.lower(): value for name, value in source.options.items()}
    start = options.pop("startingoffsets", source.start)
    if start == "latest" and begins:
        found: dict[TopicPartition, int] = {}
        for offsets in map(offsets_from_json, begins):
            found |= {each: min(at, found.get(each, at)) for each, at in offsets.items()}
        start = offsets_as_json(found)
    return replace(source, start=start, options=options)


def find_begins(pipeline: Pipeline, record: Record, query: str) -> dict[str, Offsets] | None:
    """By source; None if unknown, as for queries of versions that did not record it."""
    texts = record.begins.get(query)
    if texts is not None:
        return {name: offsets_from_json(text) for name, text in texts.items()}
    first = read_first_start(pipeline, query)
    return None if first is None else dict.fromkeys(pipeline.sources, first)


def live_stretches(
    begins: Mapping[str, Offsets], partitions: Mapping[str, Offsets]
) -> list[Stretch]:
    """What a query that began there reads; `partitions` are the current ones.

    A partition added later is read from its first record.
    """
    return [
        Stretch(source, *each, begins.get(source, {}).get(each, 0), ENDLESS)
        for source, offsets in partitions.items()
        for each in sorted(offsets)
    ]


def find_written(pipeline: Pipeline, record: Record, query: str) -> Written | None:
    """What the query has written so far; None if nothing, or if unknown.

    The sink may have one more batch than Spark has recorded.
    """
    begins = find_begins(pipeline, record, query)
    reached = read_checkpoint(pipeline, query)
    if begins is None or reached is None:
        return None
    ends, target = reached.next_offsets, _target_before(pipeline, record, query)
    planned = read_planned(pipeline, query)
    is_same = target == query_target(pipeline, query)
    if is_same and planned is not None and planned.batch_id > reached.batch_id:
        last = find_last_batch(pipeline, query)
        if last is not None and last >= planned.batch_id:
            ends = planned.next_offsets
    stretches = [
        stretch
        for source, starts in begins.items()
        for stretch in between(source, {each: starts.get(each, 0) for each in ends}, ends)
        if _reads(pipeline, source, stretch.topic)
    ]
    return Written(query, target, stretches) if stretches else None


def _target_before(pipeline: Pipeline, record: Record, query: str) -> str:
    """The file may name another target by now."""
    shape = record.shapes.get(query)
    if shape is None or not shape.sink:
        return query_target(pipeline, query)
    return f"{shape.sink['kind']} {shape.sink['target']}"


def _reads(pipeline: Pipeline, name: str, topic: str) -> bool:
    source = pipeline.sources.get(name)
    return source is not None and (bool(source.pattern) or topic in source.topics)
