from collections.abc import Iterator

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)
from tests.client.topics import create_topic

from ottla.client.wire.cluster import Cluster
from pyspark_ottla.pipeline.published import describe_rows, publish_schema, read_published

ROWS = StructType(
    [
        StructField("id", LongType()),
        StructField("amount", DecimalType(10, 2)),
        StructField("share", DoubleType()),
        StructField("at", TimestampType()),
        StructField("day", DateType()),
        StructField("paid", BooleanType()),
        StructField("picture", BinaryType()),
        StructField("tags", ArrayType(StringType())),
        StructField("more", MapType(StringType(), LongType())),
        StructField("who", StructType([StructField("name", StringType())])),
        StructField("_offset", LongType()),
    ]
)


@pytest.fixture
def cluster(bootstrap: str) -> Iterator[Cluster]:
    with Cluster(bootstrap) as cluster:
        yield cluster


def test_columns_as_json_schema() -> None:
    found = describe_rows("orders", "daily", ROWS)
    properties = found["properties"]
    assert found["title"] == "orders"
    assert found["required"] == [field.name for field in ROWS][:-1]
    assert properties["id"] == {"type": ["integer", "null"]}
    assert properties["amount"] == properties["share"] == {"type": ["number", "null"]}
    assert properties["at"] == {"type": ["string", "null"], "format": "date-time"}
    assert properties["day"] == {"type": ["string", "null"], "format": "date"}
    assert properties["paid"] == {"type": ["boolean", "null"]}
    assert properties["picture"] == {"type": ["string", "null"], "contentEncoding": "base64"}
    assert properties["tags"] == {
        "type": ["array", "null"],
        "items": {"type": ["string", "null"]},
    }
    assert properties["more"]["additionalProperties"] == {"type": ["integer", "null"]}
    assert properties["who"]["properties"] == {"name": {"type": ["string", "null"]}}


def test_a_schema_is_written_when_it_is_another(cluster: Cluster) -> None:
    topic = create_topic(cluster, 1)
    assert read_published(cluster, topic) is None
    first = describe_rows(topic, "daily", StructType(ROWS.fields[:1]))
    assert publish_schema(cluster, topic, first)
    assert not publish_schema(cluster, topic, first)
    assert read_published(cluster, topic) == first
    second = describe_rows(topic, "daily", StructType(ROWS.fields[:2]))
    assert publish_schema(cluster, topic, second)
    assert read_published(cluster, topic) == second
