"""Offsets of a source's topics: resolved from a position, and as JSON."""

import contextlib
import datetime as dt
import json
from collections.abc import Iterator

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.errors import WireError
from ottla.client.wire.offsets import EARLIEST, LATEST
from pyspark_ottla.pipeline.frames import source_options
from pyspark_ottla.pipeline.model import Pipeline, Source
from pyspark_ottla.positions import (
    AtEnd,
    AtOffsets,
    AtTimes,
    Position,
    first_offsets,
    last_offsets,
    resolve,
)
from pyspark_ottla.source_options import SourceOptions, Use, parse_source_options
from pyspark_ottla.stream_offsets import Offsets, by_topic, flat_offsets


def find_offsets(pipeline: Pipeline, source: Source, start: str) -> dict[TopicPartition, int]:
    """In each partition; an offset outside the log becomes the nearest inside.

    Raises PipelineError for an invalid position, or if no broker answers.
    """
    with _connected(pipeline, source) as (options, cluster, partitions):
        if start.isdecimal():
            first = first_offsets(cluster, partitions, options.isolation)
            last = last_offsets(cluster, partitions, options.isolation)
            return {each: min(max(int(start), first[each]), last[each]) for each in partitions}
        try:
            position = parse_position(start)
        except ValueError as error:
            raise pipeline.error(str(error), source.line) from None
        return resolve(cluster, position, partitions, options.isolation)


def find_first_offsets(pipeline: Pipeline, source: Source) -> dict[TopicPartition, int]:
    """Where the source begins for a query without a checkpoint."""
    with _connected(pipeline, source) as (options, cluster, partitions):
        position = options.start
        if not isinstance(position, AtOffsets):
            return resolve(cluster, position, partitions, options.isolation)
        # Since the offsets were recorded, partitions may have been added and records deleted.
        first = first_offsets(cluster, partitions, options.isolation)
        given = {each: position.offsets.get(each, EARLIEST) for each in partitions}
        complete = AtOffsets(given, position.option)
        found = resolve(cluster, complete, partitions, options.isolation)
        return {each: max(first[each], offset) for each, offset in found.items()}


@contextlib.contextmanager
def _connected(
    pipeline: Pipeline, source: Source
) -> Iterator[tuple[SourceOptions, Cluster, list[TopicPartition]]]:
    """With the source's partitions. Raises PipelineError if no broker answers."""
    options = parse_source_options(source_options(pipeline, source), Use.STREAM)
    try:
        with options.cluster.connect() as cluster:
            yield options, cluster, options.subscription.find_partitions(cluster)
    except WireError as error:
        raise pipeline.error(f"source {source.name}: {error}", source.line) from error


def parse_position(text: str) -> Position:
    """Raises ValueError for an invalid one."""
    if text in ("earliest", "latest"):
        return AtEnd(EARLIEST if text == "earliest" else LATEST)
    try:
        time = dt.datetime.fromisoformat(text)
    except ValueError:
        example = "earliest, latest, an offset, or a time as 2026-01-31T12:00:00Z"
        raise ValueError(f"{text!r} is no offset or time; give {example}") from None
    time = time if time.tzinfo else time.replace(tzinfo=dt.UTC)
    return AtTimes(None, int(time.timestamp() * 1000), "--from", latest_if_none=True)


def offsets_as_json(offsets: Offsets) -> str:
    """In the format of the option startingOffsets."""
    return json.dumps(by_topic(offsets))


def offsets_from_json(text: str) -> dict[TopicPartition, int]:
    return flat_offsets(json.loads(text))
