"""Values as text, JSON or Avro, decoded where the records are read."""

from typing import Any

from ottla.records.columnar.columns import Chunk, Column
from pyspark_ottla.source_options import SourceOptions, ValueFormat
from pyspark_ottla.value_decoding import Decode, Decoded, decode_text


class BadValue(ValueError):
    """A value does not have the query's format."""


class ValueReader:
    def __init__(self, options: SourceOptions, kind: Any, topic_partition: str) -> None:
        """`kind` is the column's Arrow type."""
        self._decode = decoder_of(options.value_format, options.value_schema, kind)
        self._format = options.value_format.value
        self._bad_values_are_null = options.bad_values_are_null
        self._topic_partition = topic_partition

    def decode(self, chunk: Chunk) -> Decoded:
        """Raises BadValue for the first bad value, unless bad values become null."""
        decoded = self._decode(chunk.columns[Column.VALUE])
        if decoded.bad and not self._bad_values_are_null:
            row, reason = next(iter(decoded.bad.items()))
            offset = chunk.columns[Column.OFFSET][row].as_py()
            raise BadValue(
                f"{self._topic_partition}: the value at offset {offset} is not {self._format} of"
                f" the schema: {reason} (valueMode=permissive makes it null)"
            )
        return decoded


def decoder_of(value_format: ValueFormat, avro_schema: str | None, kind: Any) -> Decode:
    """From values to an array of the Arrow type `kind`."""
    match value_format:
        case ValueFormat.BINARY:
            return lambda values: Decoded(values, {})
        case ValueFormat.STRING:
            return decode_text
        case ValueFormat.JSON:
            from pyspark_ottla.json_values import JsonDecoder

            return JsonDecoder(kind).decode
        case ValueFormat.AVRO:
            from pyspark_ottla.avro_values import AvroDecoder

            assert avro_schema is not None, "the options were checked"
            return AvroDecoder(avro_schema, kind).decode
