"""Records in a pipeline's topics that a query has not read."""

from collections.abc import Iterable

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.errors import WireError
from ottla.client.wire.offsets import LATEST
from pyspark_ottla.pipeline.checkpoint import Reached
from pyspark_ottla.pipeline.frames import source_options
from pyspark_ottla.pipeline.model import Pipeline, Source
from pyspark_ottla.positions import known_offsets
from pyspark_ottla.source_options import SourceOptions, Use, parse_source_options


def count_lag(pipeline: Pipeline, reached: Reached) -> int | None:
    """None if no broker answers."""
    lag = 0
    read = {partition.topic for partition in reached.next_offsets}
    try:
        for options in (_options(pipeline, each) for each in pipeline.sources.values()):
            with options.cluster.connect() as cluster:
                topics = options.subscription.find_topics(cluster)
                partitions = options.subscription.partitions_of(topics)
                wanted = [partition for partition in partitions if partition.topic in read]
                lag += sum(_behind(cluster, options, reached, wanted))
    except WireError:
        return None
    return lag


def _options(pipeline: Pipeline, source: Source) -> SourceOptions:
    return parse_source_options(source_options(pipeline, source), Use.STREAM)


def _behind(
    cluster: Cluster, options: SourceOptions, reached: Reached, partitions: list[TopicPartition]
) -> Iterable[int]:
    ends = known_offsets(cluster, dict.fromkeys(partitions, LATEST), options.isolation)
    return (max(0, end - reached.next_offsets.get(partition, 0)) for partition, end in ends.items())
