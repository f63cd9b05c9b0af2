"""Generates a first pipeline file for a topic, from its newest records."""

import datetime as dt
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql.types import ArrayType, DataType, StringType, StructType, TimestampType

from pyspark_ottla.pipeline.document import Text
from pyspark_ottla.pipeline.model import Pipeline, Source
from pyspark_ottla.pipeline.problems import PipelineError
from pyspark_ottla.pipeline.samples import read_newest_values
from pyspark_ottla.pipeline.schema_text import quoted
from pyspark_ottla.pipeline.validate import validate_topics
from pyspark_ottla.tables.json_inference import complete, infer_fields

_SAMPLE = 1000
_OBJECTS_MIN = 0.5  # The share of values that must be objects for the topic to count as JSON.


class Guess(NamedTuple):
    format: str
    fields: dict[str, str]  # JSON types by name.
    looked_at: int  # Records.
    unreadable: int  # Those not in the format.


def write_pipeline(path: Path, topic: str, sink: str, bootstrap_servers: str) -> Guess:
    """`sink` is topic:NAME, delta:PATH, iceberg:NAME, parquet:DIRECTORY or console.

    Raises PipelineError if the topic does not exist, or a file already does.
    """
    if path.exists():
        raise PipelineError.at(path, 0, "is there already; give another name")
    source = Source("records", 0, (Text(topic),))
    pipeline = Pipeline(path, path.stem, bootstrap_servers, "", Text(), {}, {"records": source})
    validate_topics(pipeline)
    guess = guess_format(read_newest_values(pipeline, source, _SAMPLE))
    path.write_text(render(path.stem, topic, sink, bootstrap_servers, guess))
    return guess


def guess_format(values: Sequence[bytes | None]) -> Guess:
    present = [value for value in values if value is not None]
    objects = [value for value in map(_object, present) if value is not None]
    if objects and len(objects) >= _OBJECTS_MIN * len(present):
        fields = complete(infer_fields(present))
        types = {field.name: _type(field, objects) for field in fields}
        return Guess("json", types, len(values), len(present) - len(objects))
    is_text = bool(present) and all(map(_is_text, present))
    return Guess("string" if is_text else "binary", {}, len(values), 0)


def _object(value: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(value)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _type(field: Any, objects: Sequence[dict[str, Any]]) -> str:
    """If all texts are times, the type is a time."""
    kind = field.dataType
    texts = [each[field.name] for each in objects if each.get(field.name) is not None]
    if isinstance(kind, StringType) and texts and all(map(_is_time, texts)):
        kind = TimestampType()
    return _type_text(kind)


def _type_text(kind: DataType) -> str:
    """In Spark's notation; its own does not quote the names of fields."""
    if isinstance(kind, ArrayType):
        return f"array<{_type_text(kind.elementType)}>"
    if isinstance(kind, StructType):
        fields = (f"{quoted(field.name)}:{_type_text(field.dataType)}" for field in kind)
        return f"struct<{','.join(fields)}>"
    return kind.simpleString()


def _is_time(text: Any) -> bool:
    if not isinstance(text, str) or "T" not in text:
        return False
    try:
        dt.datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def render(name: str, topic: str, sink: str, bootstrap_servers: str, guess: Guess) -> str:
    view = re.sub(r"\W", "_", topic).strip("_") or "records"
    view = view if not view[0].isdigit() else f"t{view}"
    times = [field for field, kind in guess.fields.items() if kind == "timestamp"]
    kind, _, target = sink.partition(":")
    lines = [
        f"# ottla pipeline preview {name}.yaml    what comes out of the newest records",
        f"# ottla pipeline run {name}.yaml        until ctrl-c",
        f"name: {re.sub(r'[^A-Za-z0-9_-]', '-', name)[:50]}",
        f"bootstrap-servers: {bootstrap_servers}",
        "",
        "sources:",
        f"  {view}:",
        f"    topic: {topic}",
        *_format_lines(guess),
    ]
    if times:
        lines += [
            "    # How late a row may come; windows need it.",
            f"    watermark: {{column: {times[0]}, delay: 5 minutes}}",
        ]
    lines += [
        "    # Rows for which a check is not true: drop, quarantine or fail.",
        "    # expect:",
        "    #   complete: {check: something is not null, otherwise: quarantine}",
        "",
        "steps:",
        "  selected:",
        "    sql: |",
        f"      select {_columns(guess)}",
        f"      from {view}",
        "",
        "sinks:",
        "  out:",
        "    from: selected",
        f"    {kind}: {target or 'true'}",
    ]
    if kind == "topic" and guess.format != "json":
        lines.append("    format: record")
    return "\n".join([*lines, ""])


def _format_lines(guess: Guess) -> list[str]:
    if guess.format != "json":
        return [f"    format: {guess.format}"]
    lines = [
        "    format: json",
        f"    # Of the newest {guess.looked_at} records; fields that are not named are left out.",
        "    schema: |",
    ]
    fields = [f"      {quoted(name)} {kind}" for name, kind in guess.fields.items()]
    lines += [",\n".join(fields)]
    lines += ["    # fail, drop, or quarantine: to the dead-letter topic, with the reason."]
    return [*lines, "    bad-values: quarantine"]


def _columns(guess: Guess) -> str:
    if guess.format != "json":
        return "key, value"
    return ", ".join(map(quoted, guess.fields))
