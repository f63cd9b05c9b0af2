"""Offsets of a source's topics: resolved from a position, and as JSON."""

import datetime as dt
import json
from collections.abc import Mapping

from ottla.client.wire.cluster import TopicPartition
from ottla.client.wire.errors import WireError
from ottla.client.wire.offsets import EARLIEST, LATEST
from pyspark_ottla.pipeline.frames import source_options
from pyspark_ottla.pipeline.model import Pipeline, Source
from pyspark_ottla.pipeline.problems import PipelineError, Problem
from pyspark_ottla.positions import AtEnd, AtOffsets, AtTimes, Position, known_offsets, resolve
from pyspark_ottla.source_options import Use, parse_source_options

Offsets = Mapping[TopicPartition, int]


def find_offsets(pipeline: Pipeline, source: Source, start: str) -> dict[TopicPartition, int]:
    """In each partition; an offset outside the log becomes the nearest inside.

    Raises PipelineError for an invalid position, or if no broker answers.
    """
    options = parse_source_options(source_options(pipeline, source), Use.STREAM)
    try:
        with options.cluster.connect() as cluster:
            topics = options.subscription.find_topics(cluster)
            partitions = options.subscription.partitions_of(topics)
            if start.isdecimal():
                first = dict.fromkeys(partitions, EARLIEST)
                last = dict.fromkeys(partitions, LATEST)
                first = known_offsets(cluster, first, options.isolation)
                last = known_offsets(cluster, last, options.isolation)
                return {each: min(max(int(start), first[each]), last[each]) for each in partitions}
            return resolve(cluster, parse_position(start), partitions, options.isolation)
    except ValueError as error:
        problem = Problem(source.line, str(error))
        raise PipelineError(pipeline.path, [problem]) from None
    except WireError as error:
        raise _unanswered(pipeline, source, error) from error


def find_first_offsets(pipeline: Pipeline, source: Source) -> dict[TopicPartition, int]:
    """Where the source begins for a query without a checkpoint."""
    options = parse_source_options(source_options(pipeline, source), Use.STREAM)
    try:
        with options.cluster.connect() as cluster:
            topics = options.subscription.find_topics(cluster)
            partitions = options.subscription.partitions_of(topics)
            position = options.start
            if not isinstance(position, AtOffsets):
                return resolve(cluster, position, partitions, options.isolation)
            # Since the offsets were recorded, partitions may have been added and records deleted.
            first = dict.fromkeys(partitions, EARLIEST)
            first = known_offsets(cluster, first, options.isolation)
            given = {each: position.offsets.get(each, EARLIEST) for each in partitions}
            found = resolve(
                cluster, AtOffsets(given, position.option), partitions, options.isolation
            )
            return {each: max(first[each], offset) for each, offset in found.items()}
    except WireError as error:
        raise _unanswered(pipeline, source, error) from error


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
    written: dict[str, dict[str, int]] = {}
    for each in sorted(offsets):
        written.setdefault(each.topic, {})[str(each.partition)] = offsets[each]
    return json.dumps(written)


def offsets_from_json(text: str) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, partitions in json.loads(text).items()
        for partition, offset in partitions.items()
    }


def _unanswered(pipeline: Pipeline, source: Source, error: WireError) -> PipelineError:
    problem = Problem(source.line, f"source {source.name}: {error}")
    return PipelineError(pipeline.path, [problem])
