"""The sinks of a pipeline file: where rows go."""

import re
from pathlib import Path

from pyspark_ottla.pipeline.document import Section, Text
from pyspark_ottla.pipeline.model import TABLES, Sink, SinkKind
from pyspark_ottla.pipeline.paths import resolve_path
from pyspark_ottla.tables.address import is_catalog_name

MODES = ("append", "update", "complete")

_KEYS = (
    "from",
    *SinkKind,
    "mode",
    "every",
    "key",
    "order-by",
    "deleted",
    "format",
    "partition-by",
    "partitions",
    "publish-schema",
    "sink-id",
    "options",
)
# Keys of only some kinds of sinks.
_ONLY_FOR = {
    "key": (SinkKind.TOPIC, *TABLES),
    "order-by": TABLES,
    "deleted": TABLES,
    "format": (SinkKind.TOPIC,),
    "partitions": (SinkKind.TOPIC,),
    "publish-schema": (SinkKind.TOPIC,),
    "partition-by": (SinkKind.PARQUET,),
    "sink-id": (SinkKind.TOPIC, *TABLES),
}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,45}")
_INTERVAL = re.compile(
    r"(interval\s+)?(\d+\s+(millisecond|second|minute|hour|day|week)s?\s*)+", re.IGNORECASE
)
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


def read_sinks(root: Section, directory: Path) -> dict[str, Sink]:
    section = root.section("sinks", "sinks")
    example = "{from: orders, topic: copied-orders}"
    found = [] if section is None else list(section.sections("sink", example))
    if not found:
        root.note("sinks", "sinks is missing: where the rows go")
    return {str(name): _sink(name, each, directory) for name, each in found}


def _sink(name: Text, section: Section, directory: Path) -> Sink:
    section.note_unknown(_KEYS)
    if not _NAME.fullmatch(name):
        section.document.note(
            name.line, f"{name!r} is not a name of a sink: 1 to 45 letters, digits, '_' and '-'"
        )
    kind = _kind(section)
    for key, kinds in _ONLY_FOR.items():
        if key in section and kind not in kinds:
            section.note(key, f"{key} is for sinks with {' or '.join(kinds)}")
    mode = section.choice("mode", MODES, "append")
    if kind is SinkKind.PARQUET and mode != "append":
        section.note("mode", f"Parquet files are only appended to, so mode cannot be {mode}")
    if kind in TABLES and mode != "append" and "key" not in section:
        section.note("mode", f"mode {mode} writes rows again that have changed; give their key")
    return Sink(
        name=str(name),
        line=name.line,
        kind=kind,
        target=_target(section, kind, directory),
        input=section.text("from", is_needed=True),
        mode=mode,
        trigger=_trigger(section),
        key=_key(section, kind),
        order_by=str(section.text("order-by")),
        deleted=str(section.text("deleted")),
        format=section.choice("format", ("json", "record"), "json"),
        partition_by=tuple(section.texts("partition-by")),
        partitions=section.positive("partitions"),
        sink_id=str(section.text("sink-id")),
        options=section.mapping("options"),
        publishes_schema=_publishes_schema(section),
    )


def _publishes_schema(section: Section) -> bool:
    publishes = section.flag("publish-schema")
    if publishes and section.text("format") == "record":
        section.note("publish-schema", "publish-schema is for format json")
    return publishes


def _kind(section: Section) -> SinkKind:
    given = [kind for kind in SinkKind if kind in section]
    if len(given) != 1:
        section.note("from", f"give one of {', '.join(SinkKind)}, which says where rows go")
    section.choice(SinkKind.CONSOLE, ("true",), "true")
    return given[0] if given else SinkKind.CONSOLE


def _target(section: Section, kind: SinkKind, directory: Path) -> Text:
    # Rows that are records may name their own topic.
    may_be_empty = kind is SinkKind.TOPIC and section.text("format") == "record"
    text = section.text(kind, is_needed=kind in section and not may_be_empty)
    if kind is SinkKind.TOPIC and text and not _TOPIC.fullmatch(text):
        section.note(kind, f"{text!r} is not a name of a topic")
    if text and _is_path(kind, text):
        return Text(resolve_path(directory, text), text.line)
    return text


def _trigger(section: Section) -> str:
    text = section.text("every")
    if text and not _INTERVAL.fullmatch(text):
        section.note("every", f"every is {text!r}; it is a time, as 10 seconds or 1 minute")
    return str(text)


def _is_path(kind: SinkKind, target: str) -> bool:
    if kind is SinkKind.ICEBERG:
        return not is_catalog_name(target)
    return kind in (SinkKind.PARQUET, SinkKind.DELTA)


def _key(section: Section, kind: SinkKind) -> tuple[Text, ...]:
    key = section.texts("key")
    if kind is SinkKind.TOPIC and len(key) > 1:
        section.note("key", "the key of a record is one expression, such as concat(a, '-', b)")
    if not key and ("order-by" in section or "deleted" in section):
        section.note("key", "order-by and deleted are about rows of one key; give key")
    return tuple(key)
