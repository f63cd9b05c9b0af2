"""A pipeline's topics: those it reads must exist, those it writes are created."""

import contextlib
import difflib
from collections.abc import Iterator
from dataclasses import replace

from ottla.client.wire.cluster import Cluster
from ottla.client.wire.errors import WireError
from ottla.client.wire.topics import BROKER_DEFAULT, ensure_topic, topic_config
from pyspark_ottla.options import OptionError
from pyspark_ottla.pipeline.frames import Frames, source_options
from pyspark_ottla.pipeline.model import Pipeline, Sink, SinkKind, Source
from pyspark_ottla.pipeline.problems import Problem
from pyspark_ottla.pipeline.published import describe_rows, publish_schema
from pyspark_ottla.pipeline.writers import topic_options
from pyspark_ottla.security_options import security_for
from pyspark_ottla.sink.options import parse_sink_options
from pyspark_ottla.source_options import Use, parse_source_options

_CLIENT_ID = "ottla-pipeline"
_FIRST_TIMEOUT_MS = 5_000  # Before reporting that no broker is there.


def find_problems(pipeline: Pipeline) -> list[Problem]:
    """Problems with options of sources and sinks, and with the topics they name."""
    problems: list[Problem] = []
    for source in pipeline.sources.values():
        _check_source(pipeline, source, problems)
    for sink in pipeline.sinks.values():
        if sink.kind is not SinkKind.TOPIC:
            continue
        try:
            parse_sink_options(topic_options(pipeline, sink), is_stream=True)
        except OptionError as error:
            problems.append(Problem(sink.line, f"sink {sink.name}: {error}"))
        for source in pipeline.sources.values():
            if sink.target in source.topics:
                reason = f"source {source.name} reads that topic, so it would never end"
                problems.append(Problem(sink.target.line, f"sink {sink.name}: {reason}"))
    return problems


def _check_source(pipeline: Pipeline, source: Source, problems: list[Problem]) -> None:
    title = f"source {source.name}"
    try:
        options = parse_source_options(source_options(pipeline, source), Use.STREAM)
    except OptionError as error:
        problems.append(Problem(source.line, f"{title}: {error}"))
        return
    brief = replace(options.cluster, client_id=_CLIENT_ID, retry_timeout_ms=_FIRST_TIMEOUT_MS)
    try:
        with brief.connect() as cluster:
            known = {name for name, topic in cluster.topics().items() if not topic.is_internal}
    except WireError as error:
        reason = f"no broker at {brief.bootstrap_servers} answers ({error})"
        hint = "start one with `ottla serve` or name another with --bootstrap-server"
        problems.append(Problem(source.line, f"{title}: {reason}; {hint}"))
        return
    for topic in source.topics:
        if topic not in known:
            message = f"{title}: there is no topic {topic}; {_hint(topic, known)}"
            problems.append(Problem(topic.line, message))


def _hint(topic: str, known: set[str]) -> str:
    nearest = difflib.get_close_matches(topic, known, n=1)
    make = f"`ottla topics create {topic}` makes it"
    return f"did you mean {nearest[0]}? {make}" if nearest else make


def make_topics(pipeline: Pipeline) -> list[str]:
    """Create missing topics for sinks and quarantined rows; returns their names."""
    made: list[str] = []
    for sink in pipeline.sinks.values():
        if sink.kind is SinkKind.TOPIC and sink.target:
            with _connected(pipeline, sink) as cluster:
                made += _make_missing(cluster, sink.target, sink.partitions)
    if any(dataset.quarantines for dataset in pipeline.datasets):
        with _connected(pipeline) as cluster:
            made += _make_missing(cluster, pipeline.dead_letter_topic, None)
    return made


def _make_missing(cluster: Cluster, name: str, partitions: int | None) -> list[str]:
    if name in cluster.topics([name]):
        return []
    ensure_topic(cluster, name, partitions=partitions or BROKER_DEFAULT)
    return [str(name)]


def is_compacted(pipeline: Pipeline, sink: Sink) -> bool:
    """Whether the sink's topic keeps only the last value per key."""
    with _connected(pipeline, sink) as cluster:
        if sink.target not in cluster.topics([sink.target]):
            return False
        return "compact" in topic_config(cluster, sink.target, "cleanup.policy")


def publish_schemas(pipeline: Pipeline, frames: Frames) -> None:
    """For the sinks that ask for it, each next to its topic."""
    for sink in pipeline.sinks.values():
        if sink.publishes_schema:
            rows = frames.good[sink.input].schema
            document = describe_rows(str(sink.target), pipeline.name, rows)
            with _connected(pipeline, sink) as cluster:
                publish_schema(cluster, str(sink.target), document)


@contextlib.contextmanager
def _connected(pipeline: Pipeline, sink: Sink | None = None) -> Iterator[Cluster]:
    """To the pipeline's cluster, or to the one that the sink's own options name.

    Raises PipelineError if the cluster does not do what is asked of it.
    """
    try:
        if sink is None:
            servers = pipeline.bootstrap_servers
            opened = Cluster(servers, client_id=_CLIENT_ID, security=security_for(servers))
        else:
            options = parse_sink_options(topic_options(pipeline, sink), is_stream=True)
            opened = options.cluster.connect()
        with opened as cluster:
            yield cluster
    except (WireError, OptionError) as error:
        raise pipeline.error(str(error)) from error
