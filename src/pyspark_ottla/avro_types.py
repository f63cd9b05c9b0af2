"""Avro types as Spark types, mapped like Spark's own Avro source.

A union of null and one type is that type; of integer types the longer one, of numbers a double.
Refused by name: other unions, recursive types, times of day.
"""

import json
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_ottla.options import OptionError

_PRIMITIVES: dict[str, DataType] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "bytes": BinaryType(),
    "string": StringType(),
    "fixed": BinaryType(),
    "enum": StringType(),
}
_LOGICAL: dict[str, DataType] = {
    "date": DateType(),
    "timestamp-millis": TimestampType(),
    "timestamp-micros": TimestampType(),
    "local-timestamp-millis": TimestampNTZType(),
    "local-timestamp-micros": TimestampNTZType(),
    "uuid": StringType(),
}


def parse_avro_type(text: str) -> DataType:
    """The Spark type of an Avro schema in JSON. Raises OptionError if it has none."""
    try:
        schema = json.loads(text)
    except ValueError as error:
        raise OptionError(
            f"option valueSchema is not JSON, as an Avro schema is: {error}"
        ) from None
    return _Types().convert(schema)


class _Types:
    def __init__(self) -> None:
        self._named: dict[str, DataType] = {}
        self._open: list[str] = []  # Names of the enclosing records.

    def convert(self, schema: Any) -> DataType:
        if isinstance(schema, list):
            return self._union(schema)
        if isinstance(schema, str):
            return self._by_name(schema)
        if not isinstance(schema, dict) or "type" not in schema:
            raise OptionError(f"option valueSchema: {json.dumps(schema)} is no Avro type")
        logical = schema.get("logicalType")
        if logical == "decimal":
            return DecimalType(schema["precision"], schema.get("scale", 0))
        if logical in _LOGICAL:
            return _LOGICAL[logical]
        if logical is not None:
            raise OptionError(f"option valueSchema: Avro's {logical} has no type in Spark")
        return self._complex(schema)

    def _complex(self, schema: dict[str, Any]) -> DataType:
        kind = schema["type"]
        if kind == "record":
            return self._record(schema)
        if kind == "array":
            return ArrayType(self.convert(schema["items"]))
        if kind == "map":
            return MapType(StringType(), self.convert(schema["values"]))
        converted = self.convert(kind)
        if "name" in schema:
            self._remember(schema, converted)
        return converted

    def _record(self, schema: dict[str, Any]) -> DataType:
        name = schema.get("name", "")
        self._open.append(name)
        fields = [
            StructField(field["name"], self.convert(field["type"])) for field in schema["fields"]
        ]
        self._open.pop()
        converted = StructType(fields)
        self._remember(schema, converted)
        return converted

    def _remember(self, schema: dict[str, Any], converted: DataType) -> None:
        name = schema.get("name", "")
        self._named[name] = converted
        if schema.get("namespace"):
            self._named[f"{schema['namespace']}.{name}"] = converted

    def _by_name(self, name: str) -> DataType:
        if name in _PRIMITIVES:
            return _PRIMITIVES[name]
        short = name.rpartition(".")[2]
        if short in self._open:
            raise OptionError(f"option valueSchema: {name} contains itself; Spark has no such type")
        found = self._named.get(name, self._named.get(short))
        if found is None:
            raise OptionError(f"option valueSchema: there is no Avro type {name}")
        return found

    def _union(self, branches: list[Any]) -> DataType:
        kinds = {json.dumps(branch): branch for branch in branches if branch != "null"}
        names = set(kinds)
        if names == {'"int"', '"long"'}:
            return LongType()
        if names == {'"float"', '"double"'}:
            return DoubleType()
        if len(kinds) != 1:
            raise OptionError(
                f"option valueSchema: a union of {', '.join(sorted(names))} has no type in Spark"
            )
        return self.convert(next(iter(kinds.values())))
