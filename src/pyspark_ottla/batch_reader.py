"""A batch query over topics: plans ranges of offsets, and reads them in tasks."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.offsets import EARLIEST, LATEST, list_offsets
from pyspark_ottla.cluster_pool import borrow
from pyspark_ottla.columns import validate_schema
from pyspark_ottla.data_loss import report_loss
from pyspark_ottla.filters import Narrowing, narrow
from pyspark_ottla.offset_ranges import OffsetRange, split_ranges
from pyspark_ottla.positions import AtOffsets, known_offsets, resolve
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
        """Those that Spark has to apply itself."""
        self._narrowing, left = narrow(filters)
        return left

    def partitions(self) -> Sequence[InputPartition]:
        with borrow(self._options) as cluster:
            parts = split_ranges(self._ranges(cluster), self._options.min_partitions)
        settle()
        return parts

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        from pyspark_ottla.range_reader import read_range

        if isinstance(partition, OffsetRange):  # Spark has one that is none when there is nothing.
            yield from read_range(self._options, self._schema, partition)

    def _ranges(self, cluster: Cluster) -> list[OffsetRange]:
        subscription, isolation = self._options.subscription, self._options.isolation
        topics = subscription.find_topics(cluster)
        subscription.validate_found(topics)
        subscribed = subscription.partitions_of(topics)
        starts = resolve(cluster, self._options.start, subscribed, isolation)
        ends = resolve(cluster, self._options.end, subscribed, isolation)
        self._clamp(cluster, starts, ends)
        places = [place for place in subscribed if self._narrowing.allows(place)]
        times = self._starts_by_time(cluster, places)
        ranges = []
        for place in places:
            start = max(starts[place], times.get(place, 0), self._narrowing.start)
            end = min(ends[place], self._narrowing.end)
            if start < end:
                topic_id = topics[place.topic].id
                id_text = None if topic_id is None else str(topic_id)
                ranges.append(OffsetRange(*place, start, end, id_text))
        return ranges

    def _clamp(
        self, cluster: Cluster, starts: dict[TopicPartition, int], ends: dict[TopicPartition, int]
    ) -> None:
        """Offsets that were given by number may lie outside of what is there."""
        fail = self._options.fail_on_data_loss
        if isinstance(self._options.start, AtOffsets):
            firsts = known_offsets(
                cluster, dict.fromkeys(starts, EARLIEST), self._options.isolation
            )
            for place, first in firsts.items():
                if starts[place] < first:
                    gone = f"records {starts[place]} to {first - 1} are gone"
                    report_loss(f"{place}: {gone}: the partition begins at {first}", fail=fail)
                    starts[place] = first
        if isinstance(self._options.end, AtOffsets):
            lasts = known_offsets(cluster, dict.fromkeys(ends, LATEST), self._options.isolation)
            for place, last in lasts.items():
                if ends[place] > last:
                    gone = f"records {last} to {ends[place] - 1} are not there"
                    report_loss(f"{place}: {gone}: the partition ends at {last}", fail=fail)
                    ends[place] = last

    def _starts_by_time(
        self, cluster: Cluster, places: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int]:
        time = self._narrowing.timestamp_min
        if time is None or time < 0:
            return {}
        found = list_offsets(cluster, dict.fromkeys(places, time), self._options.isolation)
        return {place: _NOTHING if offset is None else offset for place, offset in found.items()}


_NOTHING = 2**63 - 1  # An offset that no record has.
