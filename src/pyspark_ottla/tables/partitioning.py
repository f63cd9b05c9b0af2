"""How a topic's rows are divided into table partitions: by time, and by key.

    month, day, hour    of the record's timestamp, in UTC: `_month`, `_day` or `_hour`
    key/16              by a hash of the key, into that many buckets: `_bucket_16`

The columns say it all: an existing table is written as it is partitioned, whoever created it.
Buckets are those of Kafka's default partitioner with as many partitions.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import DataType, DateType, IntegerType, StringType, StructField, StructType

from pyspark_ottla.sink.partitioner import partitions_of_keys
from pyspark_ottla.tables.address import TableError

BUCKETS_MAX = 1000

_TIMES: dict[str, tuple[DataType, str | None]] = {
    "month": (StringType(), "%Y-%m"),
    "day": (DateType(), None),
    "hour": (StringType(), "%Y-%m-%dT%H"),
}
_BUCKET_COLUMN = re.compile(r"_bucket_([1-9][0-9]{0,3})")
_BUCKETS = re.compile(r"key/([1-9][0-9]{0,3})")


@dataclass(frozen=True)
class Partitioning:
    columns: tuple[str, ...] = ()  # The table's.

    def fields(self) -> StructType:
        return StructType([StructField(name, _type_of(name)) for name in self.columns])

    def values(self, timestamps: Any, keys: Any) -> dict[str, Any]:
        """The columns, for records with these times and keys."""
        return {name: _values(name, timestamps, keys) for name in self.columns}


UNPARTITIONED = Partitioning()


def parse_partitioning(texts: Sequence[str]) -> Partitioning:
    """Raises TableError for invalid ones."""
    columns = [_column_of(part.strip()) for text in texts for part in text.split(",")]
    if sum(column[1:] in _TIMES for column in columns) > 1 or len(set(columns)) < len(columns):
        raise TableError(f"{', '.join(texts)}: a table is partitioned by one time and one key/N")
    return Partitioning(tuple(columns))


def partitioning_of(columns: Sequence[str]) -> Partitioning:
    """An existing table's. Raises TableError if Ottla cannot compute its columns."""
    for name in columns:
        if name[1:] not in _TIMES and not _BUCKET_COLUMN.fullmatch(name):
            raise TableError(
                f"the table is partitioned by {', '.join(columns)}; only those that"
                " `ottla table sync --partition-by` makes are taken"
            )
    return Partitioning(tuple(columns))


def _column_of(text: str) -> str:
    if text in _TIMES:
        return f"_{text}"
    buckets = _BUCKETS.fullmatch(text)
    if buckets is None or int(buckets[1]) > BUCKETS_MAX:
        raise TableError(
            f"{text!r} is no partitioning: month, day, hour, or key/N with N up to {BUCKETS_MAX}"
        )
    return f"_bucket_{buckets[1]}"


def _type_of(name: str) -> DataType:
    return _TIMES[name[1:]][0] if name[1:] in _TIMES else IntegerType()


def _values(name: str, timestamps: Any, keys: Any) -> Any:
    if name[1:] in _TIMES:
        _, pattern = _TIMES[name[1:]]
        if pattern is None:
            return timestamps.cast(pa.date32())
        return pc.strftime(timestamps, pattern)
    match = _BUCKET_COLUMN.fullmatch(name)
    assert match is not None, "columns were checked"
    return pa.array(partitions_of_keys(keys, int(match[1]), without_key=0))
