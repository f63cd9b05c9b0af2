"""The columns of records, and their content in Arrow's terms."""

import enum
from typing import Any, NamedTuple

import pyarrow as pa


class Column(enum.StrEnum):
    KEY = "key"
    VALUE = "value"
    OFFSET = "offset"
    TIMESTAMP = "timestamp"
    TIMESTAMP_TYPE = "timestampType"  # 0 for the create time, 1 for the append time.
    HEADERS = "headers"  # Null for a record without headers.


HEADERS_TYPE = pa.list_(
    pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
)
TYPES: dict[Column, pa.DataType] = {
    Column.KEY: pa.binary(),
    Column.VALUE: pa.binary(),
    Column.OFFSET: pa.int64(),
    Column.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    Column.TIMESTAMP_TYPE: pa.int32(),
    Column.HEADERS: HEADERS_TYPE,
}


class Chunk(NamedTuple):
    """Some records of one partition, in order."""

    rows: int
    columns: dict[Column, Any]  # Arrow arrays of the requested columns.
