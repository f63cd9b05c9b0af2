"""A stream over topics: micro-batches between offsets of all partitions.

The driver has one reader per query and asks it for new offsets; tasks get copies of it. New
partitions and topics are noticed at every micro-batch and read from their first record. Data loss
is detected and reported when a micro-batch is planned.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from ottla.client.wire.cluster import Cluster, Topic, TopicPartition
from ottla.client.wire.errors import WireError
from ottla.client.wire.groups import commit_offsets
from pyspark_ottla.columns import validate_schema
from pyspark_ottla.data_loss import logger, report_loss
from pyspark_ottla.offset_ranges import (
    OffsetRange,
    join_ranges,
    limit_offsets,
    ranges_in,
    split_ranges,
)
from pyspark_ottla.options import OptionError
from pyspark_ottla.positions import NoRecordSoLate, first_offsets, last_offsets, resolve
from pyspark_ottla.source_options import SourceOptions
from pyspark_ottla.spark_api import (
    HAS_LIMITS,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark_ottla.stream_offsets import StreamOffset, parse_stream_offset
from pyspark_ottla.subscription import UnknownPartition

if TYPE_CHECKING:
    import pyarrow as pa

# A task, with the Python processes it needs, takes longer than reading this few records.
_OFFSETS_TOGETHER_MAX = 2_000
_NO_START = (NoRecordSoLate, OptionError, UnknownPartition)


class OttlaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        validate_schema(schema, options)
        if options.max_offsets_per_trigger is not None and not HAS_LIMITS:
            logger.warning("maxOffsetsPerTrigger has no effect: Spark limits batches from 4.2 on")
        self._options = options
        self._schema = schema
        self._open_cluster: Cluster | None = None
        self._target: StreamOffset | None = None  # End of a query that stops by itself.
        self._latest: StreamOffset | None = None  # As last seen.
        self._initial: StreamOffset | None = None  # Cached, because Spark asks more than once.
        self._reached: dict[str, Any] | None = None  # End of the last micro-batch.

    def __getstate__(self) -> dict[str, Any]:
        """For tasks, which do not need the driver's connections."""
        return self.__dict__ | {"_open_cluster": None}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        if self._initial is None:
            self._initial = self._ask_initial()
        return self._initial.as_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        rows = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._ask_latest()

    def latestOffset(  # noqa: N802
        self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        """Without arguments before Spark 4.2; it plans an empty range to say where it resumes.

        Except with Trigger.AvailableNow: there it asks once, before any planning. The result then
        goes into a checkpoint unchanged, including its initial mark.
        """
        if start is None:
            try:
                start = self.initialOffset() if self._reached is None else self._reached
            except _NO_START:  # A resumed query needs none; a new one fails when it asks.
                self._reached = self._ask_latest().as_json()
                return self._reached
        self._reached = self._next_end(start, limit)
        return self._reached

    def _next_end(self, start: dict[str, Any], limit: ReadLimit | None) -> dict[str, Any]:
        before = parse_stream_offset(start)
        latest = self._target or self._ask_latest()
        ends = latest.offsets
        if isinstance(limit, ReadMaxRows):
            ends = limit_offsets(self._starts(before, latest), ends, limit.max_rows)
        plain = StreamOffset(ends, latest.topic_ids).as_json()
        if plain == StreamOffset(before.offsets, before.topic_ids).as_json():
            return start  # Unchanged, because Spark compares the text.
        first_start = before.offsets if before.is_initial else None
        return StreamOffset(ends, latest.topic_ids, start=first_start).as_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return None if self._latest is None else self._latest.as_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self._reached = end
        before, after = parse_stream_offset(start), parse_stream_offset(end)
        first_start = after.first_start()
        is_own = self._initial is None or start == self._initial.as_json()
        if before.is_initial and first_start is not None and is_own:
            before = before._replace(offsets=first_start)
        starts = self._starts(before, after)
        self._report_losses(before, after, starts)
        ranges = [
            OffsetRange(*partition, starts[partition], stop, after.topic_ids.get(partition.topic))
            for partition, stop in sorted(after.offsets.items())
            if starts[partition] < stop
        ]
        if self._options.min_partitions is None:
            return self._join(ranges)
        return split_ranges(ranges, self._options.min_partitions)

    def _join(self, ranges: list[OffsetRange]) -> Sequence[InputPartition]:
        return join_ranges(ranges, _OFFSETS_TOGETHER_MAX)

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        from pyspark_ottla.range_reader import read_range

        ranges = ranges_in(partition)
        return chain.from_iterable(read_range(self._options, self._schema, each) for each in ranges)

    def commit(self, end: dict[str, Any]) -> None:
        """Publish the query's progress; nothing depends on it, so a failure is only logged."""
        group = self._options.commit_group
        if group is None:
            return
        try:
            commit_offsets(self._cluster, group, parse_stream_offset(end).offsets)
        except WireError as error:
            logger.warning("offsets are not committed for group %s: %s", group, error)

    def stop(self) -> None:
        if self._open_cluster is not None:
            self._open_cluster.close()
            self._open_cluster = None

    @property
    def _cluster(self) -> Cluster:
        if self._open_cluster is None:
            self._open_cluster = self._options.cluster.connect()
        return self._open_cluster

    def _ask_initial(self) -> StreamOffset:
        subscription = self._options.subscription
        topics = subscription.find_topics(self._cluster)
        subscription.validate_found(topics)
        partitions = subscription.partitions_of(topics)
        offsets = resolve(self._cluster, self._options.start, partitions, self._options.isolation)
        return StreamOffset(offsets, _ids_of(topics), is_initial=True)

    def _ask_latest(self) -> StreamOffset:
        topics = self._options.subscription.find_topics(self._cluster)
        partitions = self._options.subscription.partitions_of(topics)
        offsets = last_offsets(self._cluster, partitions, self._options.isolation)
        self._latest = StreamOffset(offsets, _ids_of(topics))
        return self._latest

    def _starts(self, before: StreamOffset, after: StreamOffset) -> dict[TopicPartition, int]:
        """Where to continue in each partition of `after`; new ones start at their first record."""
        new = [
            partition
            for partition in after.offsets
            if partition not in before.offsets or _is_made_again(partition.topic, before, after)
        ]
        firsts = first_offsets(self._cluster, new, self._options.isolation)
        return {
            partition: firsts.get(partition, before.offsets.get(partition, 0))
            for partition in after.offsets
        }

    def _report_losses(
        self, before: StreamOffset, after: StreamOffset, starts: dict[TopicPartition, int]
    ) -> None:
        for partition, offset in before.offsets.items():
            if partition not in after.offsets:
                self._report(f"{partition} no longer exists; it was read up to {offset}")
            elif _is_made_again(partition.topic, before, after):
                self._report(
                    f"{partition} was deleted and made again; it was read up to {offset}"
                    " and is read from its first record now"
                )
            elif after.offsets[partition] < offset:
                end = after.offsets[partition]
                self._report(f"{partition} was read up to {offset} and ends at {end} now")
        for partition in after.offsets.keys() - before.offsets.keys():
            if starts[partition] > 0:
                self._report(f"{partition} is new and begins at {starts[partition]}, not at 0")

    def _report(self, message: str) -> None:
        report_loss(message, fail=self._options.fail_on_data_loss)


def _ids_of(topics: Mapping[str, Topic]) -> dict[str, str]:
    return {name: str(topic.id) for name, topic in topics.items() if topic.id}


def _is_made_again(topic: str, before: StreamOffset, after: StreamOffset) -> bool:
    old, new = before.topic_ids.get(topic), after.topic_ids.get(topic)
    return old is not None and new is not None and old != new
