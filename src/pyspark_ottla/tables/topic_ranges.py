"""A stream whose rows are offset ranges, not records: `ottla_ranges`.

Offsets, limits, triggers and data loss work as in the source `ottla`; a range's records are read by
the task that writes them, so they do not pass through the JVM.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from pyspark_ottla.columns import COLUMNS
from pyspark_ottla.offset_ranges import OffsetRange, ranges_in
from pyspark_ottla.source_options import Use, parse_source_options
from pyspark_ottla.stream_reader import OttlaStreamReader

if TYPE_CHECKING:
    import pyarrow as pa

_SCHEMA = "topic string, partition int, start bigint, end bigint, topic_id string"


class RangesSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ottla_ranges"

    def schema(self) -> str:
        return _SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        return RangesReader(parse_source_options(self.options, Use.STREAM), COLUMNS)


class RangesReader(OttlaStreamReader):
    """Each range is one row, and so one file, by a task of its own."""

    def _join(self, ranges: list[OffsetRange]) -> Sequence[InputPartition]:
        return ranges

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        import pyarrow as pa

        schema = pa.schema(
            [
                ("topic", pa.string()),
                ("partition", pa.int32()),
                ("start", pa.int64()),
                ("end", pa.int64()),
                ("topic_id", pa.string()),
            ]
        )
        yield pa.RecordBatch.from_pylist([asdict(each) for each in ranges_in(partition)], schema)


def ranges_of(rows: Sequence[Any]) -> list[OffsetRange]:
    """From rows of the stream."""
    return [OffsetRange(*row) for row in rows]
