"""The columns of a topic: those of Spark's Kafka source, and which of them a read wants."""

import difflib
from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyspark_ottla.option_names import OptionError

if TYPE_CHECKING:
    from pyspark_ottla.source_options import SourceOptions

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


def default_schema(options: "SourceOptions") -> StructType:
    """All columns; headers only if they are asked for."""
    fields = [field for field in COLUMNS if field.name != "headers" or options.include_headers]
    return StructType(fields)


def validate_schema(schema: StructType) -> None:
    """A read that gives its own schema takes some of the columns as they are, in any order."""
    known = {field.name: field for field in COLUMNS}
    for field in schema:
        if field.name not in known:
            nearest = difflib.get_close_matches(field.name, known, n=1)
            hint = f"did you mean {nearest[0]}?" if nearest else f"there are {', '.join(known)}"
            raise OptionError(f"a topic has no column {field.name}; {hint}")
        expected = known[field.name].dataType
        if field.dataType != expected:
            raise OptionError(
                f"column {field.name} is {expected.simpleString()}"
                f" and not {field.dataType.simpleString()}"
            )
    if len({field.name for field in schema}) != len(schema):
        raise OptionError("the schema names a column twice")
