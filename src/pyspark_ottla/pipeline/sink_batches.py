"""What a sink itself knows about its batches, without Spark."""

from pyspark_ottla.pipeline.batch_writers import table_writer
from pyspark_ottla.pipeline.model import TABLES, Pipeline, SinkKind
from pyspark_ottla.pipeline.writers import dead_letter_options, sink_id, topic_options
from pyspark_ottla.sink.decisions import Decisions
from pyspark_ottla.sink.options import Delivery, SinkOptions, parse_sink_options
from pyspark_ottla.sink.two_phase import abort_prepared
from pyspark_ottla.tables.table import open_table


def find_last_batch(pipeline: Pipeline, query: str) -> int | None:
    """The last batch that counts; None if there is none, or if the sink does not keep track."""
    sink = pipeline.sinks.get(query)
    if sink is not None and sink.kind in TABLES:
        name = sink_id(pipeline, sink)
        batch = open_table(table_writer(sink, name).table).last_batch(name)
        return None if batch is None else batch.batch_id
    options = _topic_options(pipeline, query)
    if options is None:
        return None
    with options.cluster.connect() as cluster:
        decision = Decisions(cluster, options.sink_id).last()
    return None if decision is None else decision.batch.batch_id


def abandon_sink(pipeline: Pipeline, query: str) -> None:
    """End what it has left open: an open transaction blocks everyone who reads its topic."""
    options = _topic_options(pipeline, query)
    if options is not None:
        cluster = options.cluster
        abort_prepared(cluster.bootstrap_servers, options.sink_id, cluster.security)


def _topic_options(pipeline: Pipeline, query: str) -> SinkOptions | None:
    """None unless it writes to a topic exactly once."""
    sink = pipeline.sinks.get(query)
    if sink is None:
        given = dead_letter_options(pipeline, query)
    elif sink.kind is SinkKind.TOPIC:
        given = topic_options(pipeline, sink)
    else:
        return None
    options = parse_sink_options(given, is_stream=True)
    return options if options.delivery is Delivery.EXACTLY_ONCE else None
