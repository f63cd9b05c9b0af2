"""Records of a topic as rows of a table.

A value's fields are columns; a record's metadata is in columns that begin with `_`:

    _topic, _partition, _offset, _timestamp
    _key       bytes, or text
    _headers   on request
    _corrupt   the value as text, if it does not fit and such rows are kept
    _deleted   only in changes by key: whether the record is a tombstone
"""

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
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
from pyspark_ottla.columns import COLUMNS
from pyspark_ottla.source_options import ValueFormat
from pyspark_ottla.tables.address import TableError
from pyspark_ottla.tables.data_files import fit
from pyspark_ottla.tables.partitioning import UNPARTITIONED, Partitioning
from pyspark_ottla.value_decoding import decode_text
from pyspark_ottla.value_formats import decoder_of

CORRUPT = "_corrupt"
DELETED = "_deleted"
KEY = "_key"
OFFSET = "_offset"
VALUE = "value"  # The column for values without fields.


class BadRows(enum.StrEnum):
    """What happens to a record whose value does not fit."""

    FAIL = "fail"
    COLUMN = "column"


class BadRecord(ValueError):
    """A record cannot become a row."""


@dataclass(frozen=True)
class TopicRows:
    """How records become rows. Can be pickled."""

    format: ValueFormat
    avro_schema: str | None
    key_is_text: bool
    has_headers: bool
    bad_rows: BadRows
    is_changes: bool  # By key: a key's last record counts, a tombstone deletes it.

    def source_columns(self) -> StructType:
        """What must be read from the topic."""
        names = ["key", "value", "topic", "partition", "offset", "timestamp"]
        return StructType([COLUMNS[name] for name in names + ["headers"] * self.has_headers])

    def kafka_columns(self) -> StructType:
        key: DataType = StringType() if self.key_is_text else BinaryType()
        columns = [
            StructField("_topic", StringType()),
            StructField("_partition", IntegerType()),
            StructField(OFFSET, LongType()),
            StructField("_timestamp", TimestampType()),
            StructField(KEY, key),
        ]
        if self.has_headers:
            columns.append(StructField("_headers", COLUMNS["headers"].dataType))
        if self.bad_rows is BadRows.COLUMN:
            columns.append(StructField(CORRUPT, StringType()))
        return StructType(columns)

    def fixed_fields(self) -> StructType | None:
        """The value columns, if the format decides them; None for JSON."""
        kind = self._value_type()
        if kind is None or isinstance(kind, StructType):
            return kind
        return StructType([StructField(VALUE, kind)])

    def has_fields(self) -> bool:
        """Whether the columns are the fields of values; otherwise the value is one column."""
        kind = self._value_type()
        return kind is None or isinstance(kind, StructType)

    def _value_type(self) -> DataType | None:
        match self.format:
            case ValueFormat.STRING:
                return StringType()
            case ValueFormat.BINARY:
                return BinaryType()
            case ValueFormat.JSON:
                return None
            case ValueFormat.AVRO:
                assert self.avro_schema is not None, "the options were checked"
                return parse_avro_type(self.avro_schema)

    def table_columns(self, fields: StructType) -> StructType:
        """The columns of a table for values with these fields."""
        own = self.kafka_columns()
        twice = {name.lower() for name in own.fieldNames()} & {
            name.lower() for name in fields.fieldNames()
        }
        if twice:
            raise TableError(
                f"values have a field {', '.join(sorted(twice))}, which is a column of the table's"
                " own; give a schema without it"
            )
        return StructType([*fields, *own])

    def value_names(self, names: list[str], partition_by: Sequence[str] = ()) -> list[str]:
        """The columns, of a table or of changes, that come from values."""
        own = {*self.kafka_columns().fieldNames(), DELETED, CORRUPT, "_headers", *partition_by}
        return [name for name in names if name not in own]


class RowBuilder:
    """Turns the source's batches into the table's."""

    def __init__(
        self, rows: TopicRows, schema: pa.Schema, partitioning: Partitioning = UNPARTITIONED
    ) -> None:
        """`schema` is the table's, or that of changes."""
        self._rows = rows
        self._schema = schema
        self._partitioning = partitioning
        self._names = rows.value_names(schema.names, partitioning.columns)
        fields = [schema.field(name) for name in self._names]
        self._has_fields = rows.has_fields()
        kind = pa.struct(fields) if self._has_fields else fields[0].type
        self._decode = decoder_of(rows.format, rows.avro_schema, kind)
        self.bad_rows = 0

    def build(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Raises BadRecord for a value that does not fit, unless such rows are kept."""
        for batch in batches:
            yield self._build(batch)

    def _build(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        keys = self._keys(batch)
        values = batch.column("value")
        decoded = self._decode(values)
        if decoded.bad and self._rows.bad_rows is BadRows.FAIL:
            row, reason = next(iter(decoded.bad.items()))
            raise _bad(
                batch, row, f"the value is not {self._rows.format.value} that fits: {reason}"
            )
        self.bad_rows += len(decoded.bad)
        arrays = decoded.values.flatten() if self._has_fields else [decoded.values]
        columns = dict(zip(self._names, arrays, strict=True))
        columns |= {
            f"_{name}": batch.column(name)
            for name in ("topic", "partition", "offset", "timestamp", "headers")
            if name in batch.schema.names
        }
        columns |= {KEY: keys, CORRUPT: _corrupt(values, decoded.bad), DELETED: values.is_null()}
        columns |= self._partitioning.values(batch.column("timestamp"), batch.column("key"))
        return fit(pa.RecordBatch.from_pydict(columns), self._schema)

    def _keys(self, batch: pa.RecordBatch) -> Any:
        keys = batch.column("key")
        if self._rows.is_changes and keys.null_count:
            row = pc.index(keys.is_null(), True).as_py()
            raise _bad(batch, row, "a record without a key changes no row")
        if not self._rows.key_is_text:
            return keys
        decoded = decode_text(keys)
        if decoded.bad:
            raise _bad(batch, next(iter(decoded.bad)), "the key is no text")
        return decoded.values


def _corrupt(values: Any, bad: dict[int, str]) -> Any:
    """Null where the value fits."""
    if not bad:
        return pa.nulls(len(values), pa.string())
    texts = np.full(len(values), None, object)
    for row in bad:
        texts[row] = values[row].as_py().decode(errors="replace")
    return pa.array(texts, pa.string())


def _bad(batch: pa.RecordBatch, row: int, reason: str) -> BadRecord:
    topic_partition = f"{batch.column('topic')[row]}-{batch.column('partition')[row]}"
    return BadRecord(f"{topic_partition}: offset {batch.column('offset')[row]}: {reason}")
