"""Records of a source without a stream: the newest of its topics, or some given by a test.

They are decoded by the same code as in a task, so that bad values are bad here too.
"""

import base64
import datetime as dt
import io
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from ottla.client.wire.errors import WireError
from ottla.records.columnar.columns import TYPES, Chunk, Column
from pyspark_ottla.arrow_schemas import to_arrow_schema
from pyspark_ottla.batch_reader import OttlaReader
from pyspark_ottla.columns import default_schema
from pyspark_ottla.offset_ranges import OffsetRange
from pyspark_ottla.pipeline.case_rows import as_time
from pyspark_ottla.pipeline.frames import source_options
from pyspark_ottla.pipeline.model import Pipeline, Source
from pyspark_ottla.pipeline.source_offsets import offsets_as_json
from pyspark_ottla.positions import first_offsets, last_offsets
from pyspark_ottla.range_reader import ArrowBatches
from pyspark_ottla.source_options import (
    STARTS,
    STREAM_ONLY,
    SourceOptions,
    Use,
    parse_source_options,
)

_OF_RECORDS = ("key", "value", "timestamp", "headers")


class BadRow(ValueError):
    """A row of a test is not a valid record of its source."""


def source_schema(options: SourceOptions) -> StructType:
    """The columns; requires an active session."""
    schema = default_schema(options)
    return StructType.fromDDL(schema) if isinstance(schema, str) else schema  # type: ignore[return-value]


def columns_of(pipeline: Pipeline, source: Source) -> StructType:
    return source_schema(parse_source_options(batch_options(pipeline, source), Use.BATCH))


def read_newest(pipeline: Pipeline, source: Source, count: int) -> Any:
    """The last records of each partition, as an Arrow table."""
    given = batch_options(pipeline, source)
    options = parse_source_options(given, Use.BATCH)
    with options.cluster.connect() as cluster:
        partitions = options.subscription.find_partitions(cluster)
        first = first_offsets(cluster, partitions, options.isolation)
        last = last_offsets(cluster, partitions, options.isolation)
    starts = {partition: max(first[partition], last[partition] - count) for partition in partitions}
    options = parse_source_options(given | {"startingOffsets": offsets_as_json(starts)}, Use.BATCH)
    schema = source_schema(options)
    reader = OttlaReader(options, schema)
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    return pa.Table.from_batches(batches, to_arrow_schema(schema))


def read_newest_values(pipeline: Pipeline, source: Source, count: int) -> list[bytes | None]:
    """As bytes, whatever their format. Raises PipelineError if no broker answers."""
    plain = Source(source.name, source.line, source.topics, source.pattern, options=source.options)
    try:
        values: list[bytes | None] = read_newest(pipeline, plain, count)["value"].to_pylist()
    except WireError as error:
        raise pipeline.error(f"source {source.name}: {error}", source.line) from error
    return values


def make_records(pipeline: Pipeline, source: Source, rows: Sequence[Any], first_offset: int) -> Any:
    """From a test: objects, or texts that are values as they are; null has no value.

    Names that begin with `_` describe the record: `_key`, `_value`, `_timestamp`, `_headers`.
    """
    options = parse_source_options(batch_options(pipeline, source), Use.BATCH)
    records = [_record(source, row) for row in rows]
    columns: dict[Column, Any] = {
        Column.OFFSET: list(range(first_offset, first_offset + len(rows))),
        Column.KEY: [_bytes(each.get("key")) for each in records],
        Column.VALUE: [_bytes(each.get("value")) for each in records],
        Column.TIMESTAMP: [_time(each.get("timestamp")) for each in records],
        Column.TIMESTAMP_TYPE: [0] * len(rows),
        Column.HEADERS: [_headers(each.get("headers")) for each in records],
    }
    arrays = {column: pa.array(values, TYPES[column]) for column, values in columns.items()}
    topic = str(source.topics[0]) if source.topics else "topic"
    end = first_offset + len(rows)
    batches = ArrowBatches(options, source_schema(options), OffsetRange(topic, 0, 0, end, None))
    return pa.Table.from_batches([batches.build(Chunk(len(rows), arrays))])


def batch_options(pipeline: Pipeline, source: Source) -> dict[str, str]:
    """For a batch read, without a start position."""
    streaming = {name.lower() for name in (*STARTS, *STREAM_ONLY)}
    options = source_options(pipeline, source)
    return {name: value for name, value in options.items() if name.lower() not in streaming}


def _record(source: Source, row: Any) -> dict[str, Any]:
    if row is None or isinstance(row, str):
        return {"value": row}
    if not isinstance(row, dict):
        raise BadRow(f"{row!r} is no row: give an object, a text or null")
    record = {name: row[f"_{name}"] for name in _OF_RECORDS if f"_{name}" in row}
    fields = {name: value for name, value in row.items() if not str(name).startswith("_")}
    if source.format not in ("json", "avro"):
        unknown = fields.keys() - set(_OF_RECORDS)
        if unknown:
            raise BadRow(f"a record has no {', '.join(sorted(unknown))}; it has key and value")
        return record | fields
    return {"value": _encode(source, fields)} | record


def _encode(source: Source, fields: dict[str, Any]) -> str | bytes:
    if source.format == "json":
        return json.dumps(fields, default=_plain)
    import fastavro

    written = io.BytesIO()
    try:
        schema = fastavro.parse_schema(json.loads(source.schema))
        fastavro.schemaless_writer(written, schema, fields)
    except (ValueError, TypeError) as error:
        raise BadRow(f"{fields!r} is not of the schema: {error}") from None
    return written.getvalue()


def _plain(value: Any) -> str:
    """YAML types that JSON lacks, converted."""
    if isinstance(value, dt.date | dt.datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise BadRow(f"{value!r} cannot be written as JSON")


def _bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _time(value: Any) -> dt.datetime:
    if value is None:
        return dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    try:
        return as_time(value)
    except ValueError:
        raise BadRow(f"_timestamp is {value!r}, which is no time") from None


def _headers(value: Any) -> list[dict[str, Any]] | None:
    if value is None:
        return None
    return [{"key": str(key), "value": _bytes(each)} for key, each in value.items()]
