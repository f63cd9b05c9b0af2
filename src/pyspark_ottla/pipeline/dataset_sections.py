"""The sources and steps of a pipeline file, which produce rows."""

import re
from collections.abc import Mapping
from pathlib import Path

from pyspark_ottla.pipeline.document import Document, Section, Text
from pyspark_ottla.pipeline.model import Expectation, Otherwise, Sink, Source, Step, Watermark
from pyspark_ottla.pipeline.schema_text import field_names, find_wrong

FORMATS = ("binary", "string", "json", "avro")

_SOURCE_KEYS = (
    "topic",
    "pattern",
    "format",
    "schema",
    "schema-file",
    "start",
    "max-records-per-batch",
    "headers",
    "bad-values",
    "evolution",
    "watermark",
    "expect",
    "options",
)
_STEP_KEYS = ("sql", "python", "from", "with", "watermark", "expect")
_VIEW = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_WITH_SCHEMA = ("json", "avro")


def read_sources(root: Section, directory: Path) -> dict[str, Source]:
    section = root.section("sources", "sources")
    if section is None:
        root.note("sources", "sources is missing: the topics that the pipeline reads")
        return {}
    found = section.sections("source", "{topic: orders}")
    return {str(name): _source(name, each, directory) for name, each in found}


def _source(name: Text, section: Section, directory: Path) -> Source:
    section.note_unknown(_SOURCE_KEYS)
    _validate_view(name, section)
    topics, pattern = section.texts("topic"), section.text("pattern")
    if bool(topics) == bool(pattern):
        section.note("topic", "give topic (a name or a list of them) or pattern")
    kind = section.choice("format", FORMATS, "binary")
    schema = _schema(section, directory)
    if kind in _WITH_SCHEMA and not schema:
        example = "'item string, price int'" if kind == "json" else "the schema in JSON"
        section.note("format", f"format {kind} needs schema, as {example}, or schema-file")
    if kind not in _WITH_SCHEMA and schema:
        section.note("schema", f"schema has no meaning with format {kind}")
    if kind == "json" and schema:
        _validate_schema(section, schema)
    takes_added = _takes_added(section, kind, schema)
    refusal = Otherwise.QUARANTINE if "evolution" in section else Otherwise.FAIL
    bad_values = section.choice("bad-values", [*Otherwise], refusal)
    if "bad-values" in section and kind == "binary":
        section.note("bad-values", "bad-values has no meaning with format binary")
    return Source(
        name=str(name),
        line=name.line,
        topics=tuple(topics),
        pattern=pattern,
        format=kind,
        schema=schema,
        start=section.choice("start", ("earliest", "latest"), "earliest"),
        records_per_batch_max=section.positive("max-records-per-batch"),
        has_headers=section.flag("headers"),
        bad_values=Otherwise(bad_values),
        options=section.mapping("options"),
        watermark=_watermark(section),
        expectations=_expectations(section),
        takes_added=takes_added,
    )


def _takes_added(section: Section, kind: str, schema: Text) -> bool:
    given = section.section("evolution", f"evolution of {section.title}", "{added: take}")
    if given is None:
        return False
    given.note_unknown(("added",))
    takes = given.choice("added", ("take", "ignore"), "take") == "take"
    if kind != "json" or not field_names(schema):
        section.note("evolution", "evolution is for format json with a schema of fields")
        return False
    return takes


def _schema(section: Section, directory: Path) -> Text:
    schema, file = section.text("schema"), section.text("schema-file")
    if schema and file:
        section.note("schema-file", "schema and schema-file exclude each other")
    if not file:
        return schema
    try:
        return Text((directory / file).read_text(), file.line)
    except (OSError, UnicodeDecodeError) as error:
        section.note("schema-file", f"{file} cannot be read: {error}")
        return Text("-", file.line)


def _validate_schema(section: Section, schema: Text) -> None:
    wrong = find_wrong(schema)
    if wrong is not None:
        # Lines of a separate file are not lines of this one.
        line = schema.line + (0 if "schema-file" in section else wrong.line)
        section.document.note(line, f"{section.title}: schema: {wrong.message}")


def read_steps(root: Section) -> dict[str, Step]:
    section = root.section("steps", "steps")
    if section is None:
        return {}
    found = section.sections("step", "{sql: select customer from orders}")
    return {str(name): _step(name, each) for name, each in found}


def _step(name: Text, section: Section) -> Step:
    section.note_unknown(_STEP_KEYS)
    _validate_view(name, section)
    sql, function = section.text("sql"), section.text("python")
    if bool(sql) == bool(function):
        section.note("sql", "give sql, or python as module:function")
    if function and not _FUNCTION.fullmatch(function):
        section.note("python", f"python is {function!r}; it is module:function")
    inputs = section.texts("from")
    if function and not inputs:
        section.note("python", "from is missing: the sources or steps that the function is given")
    if sql and ("from" in section or "with" in section):
        section.note("sql", "from and with are for python; sql names what it reads itself")
    return Step(
        name=str(name),
        line=name.line,
        sql=sql,
        function=function,
        inputs=tuple(inputs),
        arguments=section.mapping("with"),
        watermark=_watermark(section),
        expectations=_expectations(section),
    )


def _watermark(section: Section) -> Watermark | None:
    example = "{column: at, delay: 5 minutes}"
    given = section.section("watermark", f"watermark of {section.title}", example)
    if given is None:
        return None
    given.note_unknown(("column", "delay"))
    column = given.text("column", is_needed=True)
    return Watermark(str(column), str(given.text("delay", is_needed=True)), column.line)


def _expectations(section: Section) -> tuple[Expectation, ...]:
    given = section.section("expect", f"expect of {section.title}")
    if given is None:
        return ()
    found = given.sections("expect", "{check: amount > 0, otherwise: drop}")
    return tuple(_expectation(*each) for each in found)


def _expectation(name: Text, section: Section) -> Expectation:
    section.note_unknown(("check", "otherwise"))
    if not _VIEW.fullmatch(name):
        section.note("check", f"{name!r} is not a name: letters, digits and '_'")
    if "otherwise" not in section:
        section.note("otherwise", f"otherwise is missing; it can be {', '.join(Otherwise)}")
    otherwise = section.choice("otherwise", [*Otherwise], Otherwise.FAIL)
    return Expectation(str(name), section.text("check", is_needed=True), Otherwise(otherwise))


def _validate_view(name: Text, section: Section) -> None:
    if not _VIEW.fullmatch(name):
        section.document.note(
            name.line, f"{name!r} is the name of a table in SQL: letters, digits and '_'"
        )


def validate_inputs(
    document: Document,
    sources: Mapping[str, Source],
    steps: Mapping[str, Step],
    sinks: Mapping[str, Sink],
) -> None:
    """Every `from` must name something defined earlier."""
    known = list(sources)
    for step in steps.values():
        if step.name in known:
            document.note(step.line, f"step {step.name}: a source has that name already")
        for name in step.inputs:
            _validate_known(document, name, known, f"step {step.name}")
        known.append(step.name)
    for sink in sinks.values():
        if sink.input:
            _validate_known(document, sink.input, known, f"sink {sink.name}")


def _validate_known(document: Document, name: Text, known: list[str], title: str) -> None:
    if name not in known:
        choices = ", ".join(known) or "none"
        document.note(
            name.line, f"{title}: there is no source or step {name} before it; there are: {choices}"
        )
