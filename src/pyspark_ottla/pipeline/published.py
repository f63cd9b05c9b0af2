"""The schema of a sink's rows, published next to its topic.

It is a record of the topic `TOPIC.schema`, which is compacted and has one partition: the key is the
topic's name, the value a JSON Schema of the rows. A run writes it if it differs from the last one.
"""

import json
import time
from typing import Any, Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FractionalType,
    IntegralType,
    MapType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.producing import produce
from ottla.client.wire.reading import read_records
from ottla.client.wire.topics import ensure_topic
from ottla.records.builder import Record, build_batch
from pyspark_ottla.positions import last_offsets

SUFFIX: Final = ".schema"

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_CONFIG: Final = {"cleanup.policy": "compact"}


def describe_rows(topic: str, pipeline: str, rows: StructType) -> dict[str, Any]:
    """As JSON Schema; columns whose names begin with `_` are not written."""
    fields = [field for field in rows if not field.name.startswith("_")]
    return {
        "$schema": _DIALECT,
        "title": topic,
        "description": f"written by pipeline {pipeline}",
        **_json_schema(StructType(fields)),
        "x-spark": ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in fields),
    }


def _json_schema(kind: DataType) -> dict[str, Any]:
    if isinstance(kind, StructType):
        properties = {field.name: _nullable(field.dataType) for field in kind}
        return {"type": "object", "properties": properties, "required": list(properties)}
    if isinstance(kind, ArrayType):
        return {"type": "array", "items": _nullable(kind.elementType)}
    if isinstance(kind, MapType):
        return {"type": "object", "additionalProperties": _nullable(kind.valueType)}
    for types, schema in _PLAIN:
        if isinstance(kind, types):
            return dict(schema)
    return {"type": "string"}


def _nullable(kind: DataType) -> dict[str, Any]:
    """Spark writes every column, null or not."""
    schema = _json_schema(kind)
    return schema | {"type": [schema["type"], "null"]}


_PLAIN: Final[tuple[tuple[Any, dict[str, str]], ...]] = (
    (BooleanType, {"type": "boolean"}),
    (IntegralType, {"type": "integer"}),
    ((FractionalType, DecimalType), {"type": "number"}),
    ((TimestampType, TimestampNTZType), {"type": "string", "format": "date-time"}),
    (DateType, {"type": "string", "format": "date"}),
    (BinaryType, {"type": "string", "contentEncoding": "base64"}),
)


def publish_schema(cluster: Cluster, topic: str, document: dict[str, Any]) -> bool:
    """Returns whether it differed from the last one. Raises WireError."""
    name = f"{topic}{SUFFIX}"
    ensure_topic(cluster, name, partitions=1, config=_CONFIG)
    partition = TopicPartition(name, 0)
    if read_published(cluster, topic) == document:
        return False
    record = Record(
        timestamp=time.time_ns() // 1_000_000,
        key=topic.encode(),
        value=json.dumps(document).encode(),
    )
    produce(cluster, {partition: build_batch([record])})
    return True


def read_published(cluster: Cluster, topic: str) -> dict[str, Any] | None:
    """The last one; None if there is none."""
    partition = TopicPartition(f"{topic}{SUFFIX}", 0)
    if partition.topic not in cluster.topics([partition.topic]):
        return None
    end = last_offsets(cluster, [partition])[partition]
    found = None
    for record in read_records(cluster, partition, 0, end):
        if record.key == topic.encode() and record.value is not None:
            found = json.loads(record.value)
    return found
