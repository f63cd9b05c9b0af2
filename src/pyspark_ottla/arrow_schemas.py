"""Schemas of Spark as Arrow's and back, on every Spark 4; times are in UTC."""

import inspect
from typing import Any

from pyspark.sql.pandas import types
from pyspark.sql.types import StructType

# Before Spark 4.2 the time zone is UTC unless it is refused.
_IN_UTC: dict[str, Any] = (
    {"timezone": "UTC"} if "timezone" in inspect.signature(types.to_arrow_schema).parameters else {}
)


def to_arrow_schema(schema: StructType) -> Any:
    return types.to_arrow_schema(schema, **_IN_UTC)


def from_arrow_schema(schema: Any) -> StructType:
    return types.from_arrow_schema(schema, prefer_timestamp_ntz=True)
