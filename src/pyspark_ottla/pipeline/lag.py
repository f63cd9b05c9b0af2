"""Records in a pipeline's topics that a query has not read."""

from ottla.client.wire.errors import WireError
from pyspark_ottla.pipeline.checkpoint import Reached
from pyspark_ottla.pipeline.frames import source_options
from pyspark_ottla.pipeline.model import Pipeline
from pyspark_ottla.positions import last_offsets
from pyspark_ottla.source_options import Use, parse_source_options


def count_lag(pipeline: Pipeline, reached: Reached) -> int | None:
    """None if no broker answers."""
    lag = 0
    topics = {partition.topic for partition in reached.next_offsets}
    try:
        for source in pipeline.sources.values():
            options = parse_source_options(source_options(pipeline, source), Use.STREAM)
            with options.cluster.connect() as cluster:
                partitions = options.subscription.find_partitions(cluster)
                read = [partition for partition in partitions if partition.topic in topics]
                for partition, end in last_offsets(cluster, read, options.isolation).items():
                    lag += max(0, end - reached.next_offsets.get(partition, 0))
    except WireError:
        return None
    return lag
