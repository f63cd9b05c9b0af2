"""The columns of a write: those of Spark's Kafka sink, and `timestamp`.

    key        binary or string      may be missing or null
    value      binary or string      may be null
    topic      string                not needed with the option `topic`, which overrides it
    partition  int                   may be missing or null: then the key decides
    headers    array<struct<key: string, value: binary>>
    timestamp  timestamp             may be missing or null: then it is the time of the write

`offset` and `timestampType`, which the source has, are allowed and ignored.
"""

import difflib
import time
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from ottla.records.columnar.encoder import Rows

_BYTES = (BinaryType, StringType)
_TYPES: Final[dict[str, tuple[type[DataType], ...]]] = {
    "key": _BYTES,
    "value": _BYTES,
    "topic": (StringType,),
    "partition": (IntegerType,),
    "timestamp": (TimestampType, TimestampNTZType),
    "headers": (ArrayType,),
}
_IGNORED = frozenset({"offset", "timestampType"})


class ColumnError(ValueError):
    """A column is missing, unknown, or has a wrong type."""


def validate_columns(schema: StructType, *, has_topic_option: bool) -> None:
    for field in schema.fields:
        _validate_column(field.name, field.dataType)
    names = schema.fieldNames()
    if "value" not in names:
        raise ColumnError(f"there is no column value; the columns are {', '.join(names)}")
    if not has_topic_option and "topic" not in names:
        raise ColumnError("give the option topic, or a column topic")


def _validate_column(name: str, kind: DataType) -> None:
    if name in _IGNORED:
        return
    if name not in _TYPES:
        nearest = difflib.get_close_matches(name, _TYPES, n=1, cutoff=0.6)
        hint = f"did you mean {nearest[0]}?" if nearest else f"there are {', '.join(_TYPES)}"
        raise ColumnError(f"column {name} cannot be written; {hint}")
    if not isinstance(kind, _TYPES[name]) or (name == "headers" and not _are_headers(kind)):
        wanted = " or ".join(cls().simpleString() for cls in _TYPES[name] if cls is not ArrayType)
        wanted = wanted or "array<struct<key:string,value:binary>>"
        raise ColumnError(f"column {name} is {kind.simpleString()} and must be {wanted}")


def _are_headers(kind: DataType) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields = kind.elementType.fields
    return (
        [field.name for field in fields] == ["key", "value"]
        and isinstance(fields[0].dataType, StringType)
        and isinstance(fields[1].dataType, BinaryType)
    )


class Portion:
    """Some rows, each column in one piece."""

    def __init__(self, rows: int, columns: dict[str, Any]) -> None:
        self.rows = rows
        self._columns = columns

    @staticmethod
    def of_batches(batches: list[Any]) -> "Portion":
        columns = {
            name: pa.concat_arrays([batch.column(name) for batch in batches])
            for name in batches[0].schema.names
            if name in _TYPES
        }
        return Portion(sum(batch.num_rows for batch in batches), columns)

    def column(self, name: str) -> Any:
        """None if it is missing."""
        return self._columns.get(name)

    def by_topic(self, topic: str | None) -> dict[str, "Portion"]:
        if topic is not None:
            return {topic: self}
        topics = self._columns["topic"]
        if topics.null_count:
            raise ColumnError("a row has no topic: its column topic is null")
        names = pc.unique(topics).to_pylist()
        if len(names) == 1:
            return {names[0]: self}
        return {name: self.take(pc.indices_nonzero(pc.equal(topics, name))) for name in names}

    def take(self, indices: Any) -> "Portion":
        """The rows at the indices, in that order."""
        columns = {name: column.take(indices) for name, column in self._columns.items()}
        return Portion(len(indices), columns)

    def records(self) -> Rows:
        return Rows(
            timestamp=self._timestamps(),
            key=self.column("key"),
            value=self.column("value"),
            headers=self.column("headers"),
        )

    def _timestamps(self) -> Any:
        now_ms = time.time_ns() // 1_000_000
        column = self.column("timestamp")
        if column is None:
            return np.full(self.rows, now_ms, np.int64)
        numbers = column.cast(pa.timestamp("us", tz=column.type.tz)).cast(pa.int64())
        milliseconds = pc.fill_null(numbers, now_ms * 1000).to_numpy() // 1000
        return milliseconds.astype(np.int64)
