"""Converts Spark schemas to Arrow and back, on every Spark 4; times are in UTC."""

from typing import Any

from pyspark.sql.pandas import types
from pyspark.sql.types import StructType

from pyspark_ottla.spark_api import ARROW_TIMES_IN_UTC


def to_arrow_schema(schema: StructType) -> Any:
    return types.to_arrow_schema(schema, **ARROW_TIMES_IN_UTC)


def from_arrow_schema(schema: Any) -> StructType:
    return types.from_arrow_schema(schema, prefer_timestamp_ntz=True)
