import datetime as dt
import decimal
import io
import json
import uuid
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from pyspark_ottla.arrow_schemas import to_arrow_schema
from pyspark_ottla.avro_types import parse_avro_type
from pyspark_ottla.avro_values import AvroDecoder
from pyspark_ottla.options import OptionError

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "item", "type": "string"},
        {"name": "count", "type": ["null", "int"], "default": None},
        {"name": "weight", "type": "double"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "long"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2},
        },
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "size", "type": {"type": "enum", "name": "Size", "symbols": ["S", "L"]}},
        {"name": "other_size", "type": ["null", "shop.Size"]},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 2}},
        {
            "name": "buyer",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "Buyer",
                    "fields": [{"name": "attributes", "type": {"type": "map", "values": "string"}}],
                },
            ],
        },
    ],
}
SPARK_TYPE = (
    "struct<item:string,count:int,weight:double,tags:array<string>,counts:map<string,bigint>,"
    "at:timestamp,day:date,price:decimal(8,2),id:string,size:string,other_size:string,hash:binary,"
    "buyer:struct<attributes:map<string,string>>>"
)


def encode(schema: Any, datum: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), datum)
    return out.getvalue()


def decode(schema: Any, *values: bytes | None) -> Any:
    text = json.dumps(schema)
    kind = to_arrow_schema(StructType().add("value", parse_avro_type(text))).field("value").type
    return AvroDecoder(text, kind).decode(pa.array(values, pa.binary()))


def test_every_type() -> None:
    assert parse_avro_type(json.dumps(ORDER)).simpleString() == SPARK_TYPE
    datum = {
        "item": "lamp",
        "count": 2,
        "weight": 1.5,
        "tags": ["a", "b"],
        "counts": {"x": 1},
        "at": dt.datetime(2024, 5, 1, 10, tzinfo=dt.UTC),
        "day": dt.date(2024, 5, 1),
        "price": decimal.Decimal("12.50"),
        "id": uuid.UUID("12345678-1234-5678-1234-567812345678"),
        "size": "L",
        "other_size": None,
        "hash": b"ab",
        "buyer": {"attributes": {"k": "v"}},
    }
    decoded = decode(ORDER, encode(ORDER, datum), None, encode(ORDER, datum | {"buyer": None}))
    assert decoded.bad == {}
    first, second, third = decoded.values.to_pylist()
    assert second is None
    assert third["buyer"] is None
    assert first == datum | {
        "counts": [("x", 1)],
        "id": "12345678-1234-5678-1234-567812345678",
        "buyer": {"attributes": [("k", "v")]},
    }


def test_what_is_no_datum_is_said_and_the_others_are_read() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "text", "type": "string"}]}
    good = encode(schema, {"text": "hello"})
    decoded = decode(schema, good, good[:-1], b"\x00\x00\x00\x00\x01" + good, b"", good)
    assert decoded.values.to_pylist() == [{"text": "hello"}, None, None, None, {"text": "hello"}]
    assert list(decoded.bad) == [1, 2, 3]


@pytest.mark.parametrize(
    ("schema", "spark_type"),
    [
        ('"string"', "string"),
        ('["null", "boolean"]', "boolean"),
        ('["int", "long"]', "bigint"),
        ('["null", "float", "double"]', "double"),
        ('{"type": "string"}', "string"),
        ('{"type": "long", "logicalType": "local-timestamp-micros"}', "timestamp_ntz"),
    ],
)
def test_other_types(schema: str, spark_type: str) -> None:
    assert parse_avro_type(schema).simpleString() == spark_type


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("{", "not JSON"),
        ("5", "is no Avro type"),
        ("{}", "is no Avro type"),
        ('"text"', "there is no Avro type text"),
        ('["int", "string"]', 'a union of "int", "string" has no type in Spark'),
        ('{"type": "int", "logicalType": "time-millis"}', "time-millis has no type"),
        (
            '{"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}',
            "N contains itself",
        ),
    ],
)
def test_schemas_that_spark_has_no_type_for_are_refused(schema: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse_avro_type(schema)
