"""A query's shape: what must stay for its checkpoint to remain usable, and what has changed in it.

Spark itself checks the types in a state, not their meaning: a five-minute window would continue in
the state of a one-minute window, and the rows of both would end up in one table.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark_ottla.pipeline.model import Pipeline, Sink, Step
from pyspark_ottla.pipeline.plan_text import find_sources, find_state, read_nodes

_FIELDS_SHOWN = "spark.sql.debug.maxToStringFields"
_ALL_FIELDS = "100000"


@dataclass(frozen=True)
class Shape:
    sources: list[list[str]]  # Name and topics, in checkpoint order.
    state: list[str]  # The stateful operators.
    columns: dict[str, str]  # Name and type of the sink's input.
    sink: dict[str, str]
    steps: dict[str, str]  # The text of each step on the query's path.


class Change(NamedTuple):
    message: str
    is_safe: bool  # Whether the query can continue from its checkpoint as if unchanged.


def describe_query(spark: Any, pipeline: Pipeline, sink: Sink, frame: Any) -> Shape:
    nodes = read_nodes(_explained(spark, frame))
    views = {node.detail for node in nodes if node.name == "SubqueryAlias"} | {str(sink.input)}
    sources = find_sources(nodes, set(pipeline.sources))
    return Shape(
        sources=[[name, *_topics(pipeline, name)] for name in sources],
        state=find_state(nodes),
        columns={field.name: field.dataType.simpleString() for field in frame.schema},
        sink=describe_sink(sink),
        steps={name: _text(step) for name, step in pipeline.steps.items() if name in views},
    )


def describe_sink(sink: Sink) -> dict[str, str]:
    return {
        "kind": str(sink.kind),
        "target": str(sink.target),
        "mode": sink.mode,
        "key": ", ".join(sink.key),
    }


def find_changes(before: Shape, after: Shape) -> list[Change]:
    return [
        *_source_changes(before, after),
        *_state_changes(before, after),
        *_sink_changes(before.sink, after.sink),
        *_column_changes(before.columns, after.columns),
    ]


def _explained(spark: Any, frame: Any) -> str:
    before = spark.conf.get(_FIELDS_SHOWN)
    spark.conf.set(_FIELDS_SHOWN, _ALL_FIELDS)
    try:
        if hasattr(frame, "_jdf"):
            return str(frame._jdf.queryExecution().toString())
        return str(frame._explain_string(extended=True))  # Spark Connect.
    finally:
        spark.conf.set(_FIELDS_SHOWN, before)


def _topics(pipeline: Pipeline, name: str) -> list[str]:
    source = pipeline.sources.get(name)
    if source is None:
        return []
    return [f"/{source.pattern}/"] if source.pattern else sorted(map(str, source.topics))


def _text(step: Step) -> str:
    if step.sql:
        return step.sql.strip()
    arguments = ", ".join(f"{name}={value}" for name, value in sorted(step.arguments.items()))
    return f"{step.function}({', '.join([*step.inputs, arguments])})"


def _source_changes(before: Shape, after: Shape) -> list[Change]:
    names = [source[0] for source in before.sources]
    if names != [source[0] for source in after.sources]:
        now = ", ".join(source[0] for source in after.sources)
        message = f"it read {', '.join(names)} and now reads {now}"
        return [Change(f"{message}, so the offsets of its checkpoint do not fit", is_safe=False)]
    changes = []
    for (name, *old), (_, *new) in zip(before.sources, after.sources, strict=True):
        if gone := sorted(set(old) - set(new)):
            message = f"source {name} no longer reads {', '.join(gone)}"
            changes.append(Change(f"{message}, whose offsets are then forgotten", is_safe=False))
        if added := sorted(set(new) - set(old)):
            message = f"source {name} reads {', '.join(added)} as well, from the beginning"
            changes.append(Change(message, is_safe=True))
    return changes


def _state_changes(before: Shape, after: Shape) -> list[Change]:
    if before.state == after.state:
        return []
    if not before.state:
        return [Change(f"it did not aggregate or join before{_lines(before, after)}", False)]
    return [Change(f"its state was made by another query{_lines(before, after)}", False)]


def _lines(before: Shape, after: Shape) -> str:
    """The first lines in which the steps' texts differ."""
    for name in before.steps.keys() | after.steps.keys():
        old, new = before.steps.get(name, "").splitlines(), after.steps.get(name, "").splitlines()
        for tag, start, end, new_start, new_end in difflib.SequenceMatcher(
            None, old, new, autojunk=False
        ).get_opcodes():
            if tag != "equal":
                was = " ".join(line.strip() for line in old[start:end]) or "nothing"
                now = " ".join(line.strip() for line in new[new_start:new_end]) or "nothing"
                return f" (step {name} had {was!r} and has {now!r})"
    return ""


def _sink_changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[Change]:
    old, new = (f"{sink['kind']} {sink['target']}".strip() for sink in (before, after))
    if old != new:
        kept = f"what was written stays in {old}, and only what comes now goes to {new}"
        return [Change(f"it wrote to {old} and now writes to {new}: {kept}", is_safe=False)]
    return [
        Change(f"its {name} was {before[name] or 'none'} and is {after[name] or 'none'}", False)
        for name in ("mode", "key")
        if before[name] != after[name]
    ]


def _column_changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[Change]:
    changes = [f"new column {name} {after[name]}" for name in after if name not in before]
    changes += [f"column {name} is gone" for name in before if name not in after]
    changes += [
        f"column {name} was {before[name]} and is {kind}"
        for name, kind in after.items()
        if name in before and before[name] != kind
    ]
    return [Change(message, is_safe=True) for message in changes]
