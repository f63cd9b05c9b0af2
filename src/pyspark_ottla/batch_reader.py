"""A batch query over topics: plans offset ranges and reads them in tasks."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.offsets import list_offsets
from pyspark_ottla.cluster_pool import borrow
from pyspark_ottla.columns import validate_schema
from pyspark_ottla.data_loss import report_loss
from pyspark_ottla.filters import Narrowing, narrow
from pyspark_ottla.offset_ranges import OffsetRange, split_ranges
from pyspark_ottla.positions import AtOffsets, first_offsets, last_offsets, resolve
from pyspark_ottla.source_options import SourceOptions
from pyspark_ottla.workarounds.push_filters import PushFilters
from pyspark_ottla.workarounds.settled_worker import settle

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter


class OttlaReader(DataSourceReader):
    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        validate_schema(schema, options)
        self._options = options
        self._schema = schema
        self._narrowing = Narrowing()

    @property
    def pushFilters(self) -> PushFilters:  # noqa: N802
        return PushFilters(self.push)

    def push(self, filters: Sequence["Filter"]) -> list["Filter"]:
        """Returns the filters that Spark must apply itself."""
        self._narrowing, left = narrow(filters)
        return left

    def partitions(self) -> Sequence[InputPartition]:
        with borrow(self._options.cluster) as cluster:
            parts = split_ranges(self._ranges(cluster), self._options.min_partitions)
        settle()
        return parts

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        from pyspark_ottla.range_reader import read_range

        if isinstance(partition, OffsetRange):  # Otherwise Spark's own: nothing to read.
            yield from read_range(self._options, self._schema, partition)

    def _ranges(self, cluster: Cluster) -> list[OffsetRange]:
        subscription, isolation = self._options.subscription, self._options.isolation
        topics = subscription.find_topics(cluster)
        subscription.validate_found(topics)
        subscribed = subscription.partitions_of(topics)
        starts = resolve(cluster, self._options.start, subscribed, isolation)
        ends = resolve(cluster, self._options.end, subscribed, isolation)
        self._clamp(cluster, starts, ends)
        topic_partitions = list(filter(self._narrowing.allows, subscribed))
        times = self._starts_by_time(cluster, topic_partitions)
        ranges = []
        for topic_partition in topic_partitions:
            start = max(
                starts[topic_partition], times.get(topic_partition, 0), self._narrowing.start
            )
            end = min(ends[topic_partition], self._narrowing.end)
            if start < end:
                topic_id = topics[topic_partition.topic].id
                id_text = None if topic_id is None else str(topic_id)
                ranges.append(OffsetRange(*topic_partition, start, end, id_text))
        return ranges

    def _clamp(
        self, cluster: Cluster, starts: dict[TopicPartition, int], ends: dict[TopicPartition, int]
    ) -> None:
        """Explicit offsets may lie outside the log."""
        fail = self._options.fail_on_data_loss
        if isinstance(self._options.start, AtOffsets):
            firsts = first_offsets(cluster, starts, self._options.isolation)
            for topic_partition, first in firsts.items():
                if starts[topic_partition] < first:
                    gone = f"records {starts[topic_partition]} to {first - 1} are gone"
                    report_loss(
                        f"{topic_partition}: {gone}: the partition begins at {first}", fail=fail
                    )
                    starts[topic_partition] = first
        if isinstance(self._options.end, AtOffsets):
            lasts = last_offsets(cluster, ends, self._options.isolation)
            for topic_partition, last in lasts.items():
                if ends[topic_partition] > last:
                    gone = f"records {last} to {ends[topic_partition] - 1} are not there"
                    report_loss(
                        f"{topic_partition}: {gone}: the partition ends at {last}", fail=fail
                    )
                    ends[topic_partition] = last

    def _starts_by_time(
        self, cluster: Cluster, topic_partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int]:
        time = self._narrowing.timestamp_min
        if time is None or time < 0:
            return {}
        found = list_offsets(
            cluster, dict.fromkeys(topic_partitions, time), self._options.isolation
        )
        return {
            topic_partition: _NOTHING if offset is None else offset
            for topic_partition, offset in found.items()
        }


_NOTHING = 2**63 - 1  # An offset beyond every record.
