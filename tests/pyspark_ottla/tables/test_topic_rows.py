import datetime as dt
import io
import json
from dataclasses import replace
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyspark.sql.types import (
    BooleanType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from pyspark_ottla.arrow_schemas import to_arrow_schema
from pyspark_ottla.source_options import ValueFormat
from pyspark_ottla.tables.address import TableError
from pyspark_ottla.tables.topic_rows import DELETED, BadRecord, BadRows, RowBuilder, TopicRows

FIELDS = StructType([StructField("item", StringType()), StructField("price", LongType())])
JSON = TopicRows(ValueFormat.JSON, None, False, False, BadRows.FAIL, False)
AVRO = json.dumps(
    {
        "type": "record",
        "name": "sale",
        "fields": [{"name": "item", "type": "string"}, {"name": "price", "type": "long"}],
    }
)
TIME = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def records(*values: bytes | None, key: bytes | None = b"k", has_headers: bool = False) -> Any:
    """As the source reads them."""
    rows = replace(JSON, has_headers=has_headers)
    lines = [
        {
            "key": key,
            "value": value,
            "topic": "t",
            "partition": 2,
            "offset": 10 + index,
            "timestamp": TIME,
            "headers": [{"key": "h", "value": b"1"}],
        }
        for index, value in enumerate(values)
    ]
    schema = to_arrow_schema(rows.source_columns())
    return pa.RecordBatch.from_pylist(lines, schema)


def build(
    rows: TopicRows, batch: Any, fields: StructType | None = None
) -> tuple[list[dict[str, Any]], int]:
    columns = rows.table_columns(fields or rows.fixed_fields() or FIELDS)
    if rows.is_changes:
        columns = StructType([*columns, StructField(DELETED, BooleanType())])
    builder = RowBuilder(rows, to_arrow_schema(columns))
    found = [line for part in builder.build(iter([batch])) for line in part.to_pylist()]
    return found, builder.bad_rows


def test_fields_and_what_kafka_knows_are_columns() -> None:
    found, bad = build(
        replace(JSON, has_headers=True), records(b'{"price": 3, "item": "a"}', has_headers=True)
    )
    assert bad == 0
    assert found == [
        {
            "item": "a",
            "price": 3,
            "_topic": "t",
            "_partition": 2,
            "_offset": 10,
            "_timestamp": TIME,
            "_key": b"k",
            "_headers": [{"key": "h", "value": b"1"}],
        }
    ]


def test_a_value_that_does_not_fit_is_an_error_with_its_place() -> None:
    with pytest.raises(BadRecord, match="t-2: offset 11: the value is not json that fits"):
        build(JSON, records(b"{}", b'{"price": "x"}'))


def test_a_value_that_does_not_fit_is_kept_as_text_and_counted() -> None:
    rows = replace(JSON, bad_rows=BadRows.COLUMN)
    found, bad = build(rows, records(b'{"item": "a"}', b"\xff{", None))
    assert bad == 1
    assert [line["_corrupt"] for line in found] == [None, "�{", None]
    assert [line["item"] for line in found] == ["a", None, None]


def test_a_field_with_the_name_of_a_column_of_kafka_is_refused() -> None:
    with pytest.raises(TableError, match="field _offset"):
        JSON.table_columns(StructType([StructField("_Offset", LongType())]))


def test_a_tombstone_removes_its_key() -> None:
    rows = replace(JSON, is_changes=True, key_is_text=True)
    found, _ = build(rows, records(b"{}", None))
    assert [(line["_key"], line["_deleted"]) for line in found] == [("k", False), ("k", True)]
    with pytest.raises(BadRecord, match="offset 10: a record without a key"):
        build(rows, records(b"{}", key=None))


def test_keys_can_be_text() -> None:
    rows = replace(JSON, key_is_text=True)
    assert [line["_key"] for line in build(rows, records(b"{}", key=None))[0]] == [None]
    with pytest.raises(BadRecord, match="the key is no text"):
        build(rows, records(b"{}", key=b"\xff"))


def test_avro_of_a_record_has_its_fields() -> None:
    rows = replace(JSON, format=ValueFormat.AVRO, avro_schema=AVRO)
    data = io.BytesIO()
    fastavro.schemaless_writer(data, json.loads(AVRO), {"item": "a", "price": 5})
    (line,), _ = build(rows, records(data.getvalue()))
    assert (line["item"], line["price"]) == ("a", 5)


@pytest.mark.parametrize(
    ("rows", "value", "expected"),
    [
        (replace(JSON, format=ValueFormat.STRING), b"abc", "abc"),
        (replace(JSON, format=ValueFormat.BINARY), b"\xff", b"\xff"),
        (replace(JSON, format=ValueFormat.AVRO, avro_schema='"long"'), b"\x04", 2),
    ],
)
def test_values_without_fields_are_one_column(rows: TopicRows, value: bytes, expected: Any) -> None:
    assert [line["value"] for line in build(rows, records(value))[0]] == [expected]


def test_columns_that_the_table_has_from_elsewhere_are_null() -> None:
    fields = StructType([*FIELDS, StructField("_headers", StringType())])
    schema = to_arrow_schema(fields)
    (part,) = RowBuilder(JSON, schema).build(iter([records(b'{"item": "a"}')]))
    assert part.to_pylist() == [{"item": "a", "price": None, "_headers": None}]
