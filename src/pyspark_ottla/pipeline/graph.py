"""A pipeline's steps as a drawing, in text and as SVG.

The inputs of an SQL step are found by searching its text for names of sources and steps, without
Spark.
"""

import re
from html import escape
from typing import NamedTuple

from pyspark_ottla.pipeline.model import Pipeline, Step
from pyspark_ottla.pipeline.writers import DEAD_LETTER

_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.)*'", re.DOTALL)
_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _MARGIN = 200, 44, 70, 22, 20
_COLOURS = {"source": "#dbeafe", "step": "#fef9c3", "sink": "#dcfce7", "refused": "#fee2e2"}


class Box(NamedTuple):
    name: str
    kind: str  # source, step, sink or refused.
    about: str
    inputs: tuple[str, ...]

    @property
    def id(self) -> str:
        """A sink may have the name of a step."""
        return self.name if self.kind in ("source", "step") else f"{self.kind} {self.name}"


def draw_boxes(pipeline: Pipeline) -> list[Box]:
    """Each box after its inputs."""
    boxes = [
        Box(source.name, "source", _topics(source.topics, source.pattern), ())
        for source in pipeline.sources.values()
    ]
    for step in pipeline.steps.values():
        about = "sql" if step.sql else str(step.function)
        boxes.append(Box(step.name, "step", about, _inputs(pipeline, step)))
    for dataset in pipeline.datasets:
        if dataset.quarantines:
            name, topic = f"{DEAD_LETTER}{dataset.name}", f"topic {pipeline.dead_letter_topic}"
            boxes.append(Box(name, "refused", topic, (dataset.name,)))
    for sink in pipeline.sinks.values():
        about = f"{sink.kind} {sink.target}".strip()
        boxes.append(Box(sink.name, "sink", about, (str(sink.input),)))
    return boxes


def _topics(topics: tuple[str, ...], pattern: str) -> str:
    return f"topics /{pattern}/" if pattern else f"topic {', '.join(topics)}"


def _inputs(pipeline: Pipeline, step: Step) -> tuple[str, ...]:
    if step.inputs:
        return tuple(map(str, step.inputs))
    words = set(re.findall(r"\w+", _COMMENT.sub(" ", step.sql).lower()))
    before = [*pipeline.sources]
    for name in pipeline.steps:
        if name == step.name:
            break
        before.append(name)
    return tuple(name for name in before if name.lower() in words)


def as_text(pipeline: Pipeline) -> str:
    """A tree from each source to the sinks; nodes with several inputs appear under each."""
    boxes = draw_boxes(pipeline)
    lines: list[str] = []

    def add(box: Box, indent: str, is_last: bool, is_root: bool) -> None:
        branch = "" if is_root else ("└─ " if is_last else "├─ ")
        lines.append(f"{indent}{branch}{box.name}  ({box.about})")
        readers = [each for each in boxes if box.id in each.inputs]
        below = indent if is_root else indent + ("   " if is_last else "│  ")
        for number, each in enumerate(readers):
            add(each, below, number == len(readers) - 1, False)

    for box in boxes:
        if not box.inputs:
            add(box, "", True, True)
    return "\n".join(lines)


def as_svg(pipeline: Pipeline) -> str:
    boxes = draw_boxes(pipeline)
    columns = _columns(boxes)
    rows: dict[int, int] = {}
    corners: dict[str, tuple[int, int]] = {}
    for box in boxes:
        column = columns[box.id]
        row = rows.get(column, 0)
        rows[column] = row + 1
        x = _MARGIN + column * (_WIDTH + _GAP_X)
        corners[box.id] = (x, _MARGIN + row * (_HEIGHT + _GAP_Y))
    width = max(x for x, _ in corners.values()) + _WIDTH + _MARGIN
    height = max(y for _, y in corners.values()) + _HEIGHT + _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f"<title>{escape(pipeline.name)}</title>",
        '<defs><marker id="end" markerWidth="8" markerHeight="8" refX="7" refY="4"'
        ' orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>',
    ]
    for box in boxes:
        parts += [_line(corners[name], corners[box.id]) for name in box.inputs]
    parts += [_rectangle(box, *corners[box.id]) for box in boxes]
    return "\n".join([*parts, "</svg>", ""])


def _columns(boxes: list[Box]) -> dict[str, int]:
    """Distance in steps from a source; all sinks are in the last column."""
    found: dict[str, int] = {}
    for box in boxes:
        found[box.id] = max((found[name] + 1 for name in box.inputs), default=0)
    last = max(found.values())
    return {box.id: last if box.kind == "sink" else found[box.id] for box in boxes}


def _line(start: tuple[int, int], end: tuple[int, int]) -> str:
    x, y = start[0] + _WIDTH, start[1] + _HEIGHT // 2
    to_x, to_y = end[0], end[1] + _HEIGHT // 2
    middle = (x + to_x) // 2
    path = f"M{x},{y} C{middle},{y} {middle},{to_y} {to_x},{to_y}"
    return f'<path d="{path}" fill="none" stroke="#555" marker-end="url(#end)"/>'


def _rectangle(box: Box, x: int, y: int) -> str:
    about = box.about if len(box.about) <= 32 else f"…{box.about[-31:]}"
    return (
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6"'
        f' fill="{_COLOURS[box.kind]}" stroke="#555"/>'
        f'<text x="{x + 10}" y="{y + 18}" font-weight="bold">{escape(box.name)}</text>'
        f'<text x="{x + 10}" y="{y + 35}" fill="#444">{escape(about)}</text>'
    )
