import json

import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from pyspark_ottla.columns import COLUMNS, default_schema, validate_schema
from pyspark_ottla.options import OptionError
from pyspark_ottla.source_options import SourceOptions, parse_source_options

ITEM = StructType([StructField("item", StringType())])


def options(**given: str) -> SourceOptions:
    return parse_source_options({"kafka.bootstrap.servers": "h:1", "subscribe": "t"} | given)


def value_of(schema: StructType | str) -> str:
    assert isinstance(schema, StructType)
    return schema["value"].dataType.simpleString()


def test_all_columns_with_headers_when_asked_for() -> None:
    assert default_schema(options(includeHeaders="true")) == COLUMNS
    assert default_schema(options()) == StructType(COLUMNS.fields[:-1])


def test_the_type_of_values() -> None:
    assert value_of(default_schema(options(valueFormat="string"))) == "string"
    avro = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'
    assert (
        value_of(default_schema(options(valueFormat="avro", valueSchema=avro))) == "struct<a:int>"
    )
    as_json = json.dumps(ITEM.jsonValue())
    found = default_schema(options(valueFormat="json", valueSchema=as_json))
    assert value_of(found) == "struct<item:string>"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("item string, price int", "struct<item string, price int>"),
        ("STRUCT<item: string>", "STRUCT<item: string>"),
        ("map<string, int>", "map<string, int>"),
    ],
)
def test_a_schema_in_sparks_words_is_left_to_spark(text: str, kind: str) -> None:
    assert default_schema(options(valueFormat="json", valueSchema=text)) == (
        f"key binary, value {kind}, topic string, partition int, offset bigint,"
        " timestamp timestamp, timestampType int"
    )


def test_the_schema_of_a_read_says_how_json_is_read() -> None:
    given = StructType([StructField("value", ITEM)])
    validate_schema(given, options(valueFormat="json"))
    with pytest.raises(OptionError, match="value is binary and not struct"):
        validate_schema(given, options())
    with pytest.raises(OptionError, match="value is string and not int"):
        validate_schema(
            StructType([StructField("value", IntegerType())]), options(valueFormat="string")
        )


@pytest.mark.parametrize("text", ["{", '{"fields": 3}', '{"a": 1}'])
def test_json_that_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match="not a schema of Spark"):
        default_schema(options(valueFormat="json", valueSchema=text))


def test_json_without_a_schema_is_refused() -> None:
    with pytest.raises(OptionError, match="needs option valueSchema"):
        default_schema(options(valueFormat="json"))
