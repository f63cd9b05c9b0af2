"""Query filters that narrow a read.

topic, partition  select the partitions to read, with any filter
offset            narrows each partition's range
timestamp         a lower bound becomes an offset, through the broker's time index. Spark still
                  checks every row, and upper bounds are not used: producer times need not rise,
                  so a record with an earlier time may come later

Spark 4.0 pushes no filters and has no classes for them, so they are looked up on first use.
"""

import datetime as dt
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource as spark

from ottla.client.wire.cluster import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
_MICROSECONDS_PER_MILLISECOND = 1000
_NEVER_NULL = ("topic", "partition", "offset", "timestamp", "timestampType")


@dataclass
class Narrowing:
    """What is left to read; filters only narrow it."""

    partition_filters: list["Filter"] = field(default_factory=list)
    start: int = 0
    end: int = 2**63 - 1
    timestamp_min: int | None = None  # Milliseconds.

    def take(self, item: "Filter") -> bool:
        """True if the filter is fully handled, so that Spark need not apply it again."""
        column = _column(item)
        if isinstance(item, spark.IsNotNull) and column in _NEVER_NULL:
            return True
        if column in ("topic", "partition"):
            self.partition_filters.append(item)
            return True
        if column == "offset":
            return self._take_offset(item)
        if column == "timestamp":
            self._take_timestamp(item)
        return False

    def allows(self, topic_partition: TopicPartition) -> bool:
        values = topic_partition._asdict()
        return all(holds(item, values[_column(item)]) for item in self.partition_filters)

    def _take_offset(self, item: "Filter") -> bool:
        if isinstance(item, spark.EqualTo | spark.EqualNullSafe):
            bounds = item.value, item.value + 1
        elif isinstance(item, spark.GreaterThanOrEqual):
            bounds = item.value, self.end
        elif isinstance(item, spark.GreaterThan):
            bounds = item.value + 1, self.end
        elif isinstance(item, spark.LessThan):
            bounds = self.start, item.value
        elif isinstance(item, spark.LessThanOrEqual):
            bounds = self.start, item.value + 1
        elif isinstance(item, spark.In) and None not in item.value:
            self._narrow(min(item.value), max(item.value) + 1)
            return False
        else:
            return False
        self._narrow(*bounds)
        return True

    def _narrow(self, start: int, end: int) -> None:
        self.start, self.end = max(self.start, start), min(self.end, end)

    def _take_timestamp(self, item: "Filter") -> None:
        if not isinstance(
            item, spark.EqualTo | spark.EqualNullSafe | spark.GreaterThan | spark.GreaterThanOrEqual
        ):
            return
        if not isinstance(item.value, dt.datetime) or item.value.tzinfo is None:
            return
        microseconds = (item.value - _EPOCH) // _MICROSECOND
        if isinstance(item, spark.GreaterThan):
            microseconds += 1
        milliseconds = -(-microseconds // _MICROSECONDS_PER_MILLISECOND)
        if self.timestamp_min is None or milliseconds > self.timestamp_min:
            self.timestamp_min = milliseconds


def narrow(filters: Iterable["Filter"]) -> tuple[Narrowing, list["Filter"]]:
    """What is left to read, and the filters that Spark must still apply."""
    narrowing = Narrowing()
    return narrowing, [item for item in filters if not narrowing.take(item)]


def _column(item: "Filter") -> str:
    while isinstance(item, spark.Not):
        item = item.child
    path: tuple[str, ...] = getattr(item, "attribute", ())
    return path[0] if len(path) == 1 else ""


def holds(item: "Filter", value: Any) -> bool | None:
    """Whether the filter holds for a value that is not null; None for SQL's "unknown"."""
    if isinstance(item, spark.Not):
        inner = holds(item.child, value)
        return None if inner is None else not inner
    if isinstance(item, spark.IsNull):
        return False
    if isinstance(item, spark.IsNotNull):
        return True
    if isinstance(item, spark.In):
        return True if value in item.value else (None if None in item.value else False)
    compare = _COMPARISONS[type(item).__name__]
    return bool(compare(value, item.value))  # type: ignore[attr-defined]


_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {  # By filter class name.
    "EqualTo": operator.eq,
    "EqualNullSafe": operator.eq,
    "GreaterThan": operator.gt,
    "GreaterThanOrEqual": operator.ge,
    "LessThan": operator.lt,
    "LessThanOrEqual": operator.le,
    "StringStartsWith": str.startswith,
    "StringEndsWith": str.endswith,
    "StringContains": operator.contains,
}
