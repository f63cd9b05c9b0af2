"""The columns of a topic, like those of Spark's Kafka source, and the ones that a read selects."""

import difflib
import json

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

from pyspark_ottla.avro_types import parse_avro_type
from pyspark_ottla.options import OptionError
from pyspark_ottla.source_options import SourceOptions, ValueFormat

_HEADERS = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)
COLUMNS = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
        StructField("headers", _HEADERS),
    ]
)
RAW_VALUE = StructField("rawValue", BinaryType())  # The bytes that `value` was decoded from.
VALUE_ERROR = StructField("valueError", StringType())  # Why it failed; null if it did not.


def default_schema(options: SourceOptions) -> StructType | str:
    """All columns; headers and raw values only on request. Spark parses a text result."""
    value = _value_type(options)
    fields = [field for field in COLUMNS if field.name != "headers" or options.include_headers]
    if options.include_raw_value:
        fields.append(RAW_VALUE)
    if options.include_value_error:
        fields.append(VALUE_ERROR)
    if isinstance(value, str):
        types = {field.name: field.dataType.simpleString() for field in fields} | {"value": value}
        return ", ".join(f"{name} {kind}" for name, kind in types.items())
    return StructType(
        [StructField("value", value) if field.name == "value" else field for field in fields]
    )


def _value_type(options: SourceOptions) -> DataType | str:
    if options.value_format is ValueFormat.BINARY:
        return BinaryType()
    if options.value_format is ValueFormat.STRING:
        return StringType()
    if options.value_schema is None:
        raise OptionError(
            "valueFormat=json needs option valueSchema, as 'item string, price int',"
            " or a schema of the read in which value is a struct"
        )
    if options.value_format is ValueFormat.AVRO:
        return parse_avro_type(options.value_schema)
    return _json_type(options.value_schema)


def _json_type(text: str) -> DataType | str:
    """From DDL or JSON, as Spark writes schemas."""
    if text.lstrip().startswith("{"):
        try:
            return StructType.fromJson(json.loads(text))
        except (ValueError, LookupError, TypeError) as error:
            raise OptionError(f"option valueSchema is not a schema of Spark: {error}") from None
    return text if text.lower().startswith(_NESTED) else f"struct<{text}>"


_NESTED = ("struct<", "array<", "map<")


def validate_schema(schema: StructType, options: SourceOptions) -> None:
    """A read with its own schema selects columns in any order, with their types unchanged."""
    known: dict[str, DataType | None] = {field.name: field.dataType for field in COLUMNS}
    known["value"] = _fixed_value_type(options)
    if options.value_format is not ValueFormat.BINARY:
        known |= {field.name: field.dataType for field in (RAW_VALUE, VALUE_ERROR)}
    for field in schema:
        if field.name not in known:
            nearest = difflib.get_close_matches(field.name, known, n=1)
            hint = f"did you mean {nearest[0]}?" if nearest else f"there are {', '.join(known)}"
            raise OptionError(f"a topic has no column {field.name}; {hint}")
        expected = known[field.name]
        if expected is not None and field.dataType != expected:
            raise OptionError(
                f"column {field.name} is {expected.simpleString()}"
                f" and not {field.dataType.simpleString()}"
            )
    if len({field.name for field in schema}) != len(schema):
        raise OptionError("the schema names a column twice")


def _fixed_value_type(options: SourceOptions) -> DataType | None:
    """None for JSON, whose values are read as the schema says."""
    if options.value_format is ValueFormat.JSON:
        return None
    found = _value_type(options)
    assert isinstance(found, DataType)
    return found
