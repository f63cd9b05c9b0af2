import datetime as dt
import time
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyspark_ottla.sink.columns import ColumnError, Portion, validate_columns

HEADER = StructType().add("key", StringType()).add("value", BinaryType())
STRING, INT, TIME = StringType(), IntegerType(), TimestampType()


def validate(*, has_topic_option: bool = True, **columns: DataType) -> None:
    schema = StructType([StructField(name, kind) for name, kind in columns.items()])
    validate_columns(schema, has_topic_option=has_topic_option)


def test_all_columns_of_the_kafka_sink_and_those_of_the_source() -> None:
    validate(
        key=STRING,
        value=BinaryType(),
        topic=STRING,
        partition=INT,
        timestamp=TIME,
        headers=ArrayType(HEADER),
        offset=LongType(),
        timestampType=INT,
        has_topic_option=False,
    )
    validate(value=STRING)


HEADERS_MESSAGE = "must be array<struct<key:string,value:binary>>"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"key": STRING}, "no column value; the columns are key"),
        ({"value": STRING, "header": STRING}, "header cannot be written; did you mean headers"),
        ({"value": STRING, "other": STRING}, "other cannot be written; there are key, value"),
        ({"value": INT}, "column value is int and must be binary or string"),
        ({"value": STRING, "partition": LongType()}, "partition is bigint and must be int"),
        ({"value": STRING, "headers": ArrayType(STRING)}, HEADERS_MESSAGE),
        (
            {"value": STRING, "headers": ArrayType(StructType(HEADER.fields[::-1]))},
            HEADERS_MESSAGE,
        ),
    ],
)
def test_columns_that_cannot_be_written(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(ColumnError, match=message):
        validate(**columns)


def test_the_topic_is_given_somewhere() -> None:
    with pytest.raises(ColumnError, match="option topic, or a column topic"):
        validate(value=STRING, has_topic_option=False)


def portion(**columns: pa.Array) -> Portion:
    return Portion.of_batches([pa.RecordBatch.from_pydict(columns)])


def test_batches_are_joined_and_parted_by_topic() -> None:
    batches = [
        pa.RecordBatch.from_pydict({"topic": ["a", "b"], "value": ["1", "2"]}),
        pa.RecordBatch.from_pydict({"topic": ["a"], "value": ["3"]}),
    ]
    joined = Portion.of_batches(batches)
    assert joined.rows == 3
    parts = joined.by_topic(None)
    assert {name: part.column("value").to_pylist() for name, part in parts.items()} == {
        "a": ["1", "3"],
        "b": ["2"],
    }
    assert joined.by_topic("all") == {"all": joined}


def test_a_row_without_a_topic_is_refused() -> None:
    with pytest.raises(ColumnError, match="a row has no topic"):
        portion(topic=pa.array(["a", None]), value=pa.array(["1", "2"])).by_topic(None)


def test_the_time_is_that_of_the_row_or_of_the_write() -> None:
    moment = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
    before_ms = time.time_ns() // 1_000_000
    times = pa.array([moment, None], pa.timestamp("us", tz="UTC"))
    given, made = portion(value=pa.array(["1", "2"]), timestamp=times).records().timestamp
    assert given == moment.timestamp() * 1000
    assert made >= before_ms
    (alone,) = portion(value=pa.array(["1"])).records().timestamp
    assert alone >= before_ms
