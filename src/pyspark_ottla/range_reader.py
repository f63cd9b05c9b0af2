"""The work of a task: reads a partition's range into Arrow batches, in bounded memory.

The next fetch is in flight while the last one is decoded. A range that is gone, or ends early, is
reported as data loss.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

from ottla.client.wire.cluster import Cluster
from ottla.client.wire.errors import OffsetOutOfRange
from ottla.client.wire.fetching import Fetched, Fetcher
from ottla.client.wire.offsets import Isolation
from ottla.records.columnar.binary import fixed_array, repeated_text
from ottla.records.columnar.columns import Chunk, Column
from ottla.records.columnar.decoder import ROWS_MAX, decode_batches
from ottla.records.errors import CorruptBatch
from ottla.records.isolation import scan_batches
from pyspark_ottla.arrow_schemas import to_arrow_schema
from pyspark_ottla.cluster_pool import borrow
from pyspark_ottla.columns import RAW_VALUE, VALUE_ERROR
from pyspark_ottla.data_loss import report_loss
from pyspark_ottla.offset_ranges import OffsetRange
from pyspark_ottla.positions import first_offsets, last_offsets
from pyspark_ottla.source_options import SourceOptions, ValueFormat
from pyspark_ottla.value_decoding import Decoded
from pyspark_ottla.value_formats import ValueReader
from pyspark_ottla.workarounds.settled_worker import settle

_MADE_AGAIN = "the topic was deleted and made again while it was read"


def read_range(
    options: SourceOptions, schema: StructType, wanted: OffsetRange
) -> Iterator[pa.RecordBatch]:
    batches = ArrowBatches(options, schema, wanted)
    with borrow(options.cluster) as cluster:
        for chunk in _RangeReader(options, cluster, wanted, batches.columns).chunks():
            yield batches.build(chunk)
    settle()


class ArrowBatches:
    """Chunks with the columns that the broker does not send, in schema order."""

    def __init__(self, options: SourceOptions, schema: StructType, wanted: OffsetRange) -> None:
        self._schema = to_arrow_schema(schema)
        self.columns = frozenset(Column) & frozenset(self._schema.names)
        if {RAW_VALUE.name, VALUE_ERROR.name} & set(self._schema.names):
            self.columns |= {Column.VALUE}
        self._values: ValueReader | None = None
        has_value = Column.VALUE in self._schema.names
        if has_value and options.value_format is not ValueFormat.BINARY:
            kind = self._schema.field(Column.VALUE).type
            self._values = ValueReader(options, kind, str(wanted.topic_partition))
            self.columns |= {Column.OFFSET}  # To locate bad values.
        rows_max = min(ROWS_MAX, wanted.end - wanted.start)
        self._constants = {
            "topic": repeated_text(wanted.topic, rows_max),
            "partition": fixed_array(np.full(rows_max, wanted.partition, np.int32), pa.int32()),
        }

    def build(self, chunk: Chunk) -> pa.RecordBatch:
        decoded = Decoded(None, {}) if self._values is None else self._values.decode(chunk)
        arrays = [self._array(chunk, name, decoded) for name in self._schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _array(self, chunk: Chunk, name: str, decoded: Decoded) -> Any:
        if name in self._constants:
            return self._constants[name].slice(0, chunk.rows)
        if name == Column.VALUE and self._values is not None:
            return decoded.values
        if name == VALUE_ERROR.name:
            if not decoded.bad:
                return pa.nulls(chunk.rows, pa.string())
            return pa.array([decoded.bad.get(row) for row in range(chunk.rows)], pa.string())
        if name == RAW_VALUE.name:
            return chunk.columns[Column.VALUE]
        return chunk.columns[Column(name)]


@dataclass
class _RangeReader:
    options: SourceOptions
    cluster: Cluster
    wanted: OffsetRange
    columns: frozenset[Column]

    def __post_init__(self) -> None:
        self._offset = self.wanted.start
        self._patient_until = self._new_deadline()

    def chunks(self) -> Iterator[Chunk]:
        end = self.wanted.end
        if not self._is_the_same_topic():
            return
        with Fetcher(
            self.cluster,
            self.wanted.topic_partition,
            self.options.isolation,
            bytes_max=self.options.fetch_bytes,
        ) as fetcher:
            while self._offset < end:
                fetched = self._fetch(fetcher)
                if fetched is not None:
                    yield from self._decode(fetcher, fetched)

    def _decode(self, fetcher: Fetcher, fetched: Fetched) -> Iterator[Chunk]:
        start, end = self._offset, self.wanted.end
        scan = scan_batches(fetched.records, start, end, fetched.aborted)
        self._offset = scan.next_offset
        if start == self._offset:
            self._on_nothing(fetched)
            return
        self._patient_until = self._new_deadline()
        if self._offset < end:
            fetcher.ask(self._offset)
        columns = self.columns or frozenset({Column.OFFSET})  # Rows must be counted.
        yield from decode_batches(fetched.records, scan.batches, columns, start, end)

    def _fetch(self, fetcher: Fetcher) -> Fetched | None:
        """None if nothing was left at the offset; reading continues where records are."""
        try:
            fetched = fetcher.fetch(self._offset)
            if self._is_known_by_its_id():
                return fetched
            self._skip_to(self.wanted.end, _MADE_AGAIN)
            return None
        except OffsetOutOfRange:
            read = self.wanted.topic_partition
            first = first_offsets(self.cluster, [read])[read]
            if self._offset < first:
                self._skip_to(min(first, self.wanted.end), f"the partition begins at {first} now")
            else:
                last = last_offsets(self.cluster, [read], self.options.isolation)[read]
                self._skip_to(self.wanted.end, f"the partition ends at {last} now")
            return None

    def _on_nothing(self, fetched: Fetched) -> None:
        """The broker returned no batch although there should be more."""
        if len(fetched.records):
            raise CorruptBatch(
                f"{self.wanted.topic_partition}: no whole batch at offset {self._offset}"
            )
        if time.monotonic() < self._patient_until:
            return
        is_committed = self.options.isolation is Isolation.READ_COMMITTED
        last = fetched.last_stable_offset if is_committed else fetched.high_watermark
        self._skip_to(self.wanted.end, f"the partition ends at {last}")

    def _skip_to(self, offset: int, reason: str) -> None:
        self._report(f"records {self._offset} to {offset - 1} are gone: {reason}")
        self._offset = offset

    def _is_the_same_topic(self) -> bool:
        if self._is_known_by_its_id():
            return True
        self.cluster.forget_metadata()  # It may be older than the plan.
        if self._is_known_by_its_id():
            return True
        self._report(_MADE_AGAIN)
        return False

    def _is_known_by_its_id(self) -> bool:
        """Whether the cluster's latest metadata has the planned topic id."""
        topic = self.cluster.retry(lambda: self.cluster.topic(self.wanted.topic))
        return self.wanted.topic_id in (None, str(topic.id))

    def _report(self, message: str) -> None:
        report_loss(
            f"{self.wanted.topic_partition}: {message}", fail=self.options.fail_on_data_loss
        )

    def _new_deadline(self) -> float:
        return time.monotonic() + self.options.cluster.retry_timeout_ms / 1000
