"""Generates docs/logs.md from the log calls: `python -m ottla.node.log_reference`."""

import ast
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from ottla.node.log_events import event_of

_HEADER: Final = """\
# Log events

Generated from the code by `make docs`; do not edit by hand.

Nodes and gateways write one line per event to stderr. With `--log-format json` a line is a
JSON object with `time`, `level`, `component`, `event`, `message`, and `arguments`, the values in
the order of the text below; a fault adds `exception`. Component and event identify the log call.
An event is named after its text, so a release that rewords a line renames its event on this
page. Debug lines are not written.
"""
_PACKAGE: Final = Path(__file__).parents[1]
_METHODS: Final = ("debug", "info", "warning", "error", "exception", "critical")
_LOGGERS: Final = ("logger", "_logger")
_EXCEPTION: Final = "exception"  # Has the level error.


class Event(NamedTuple):
    component: str
    level: str
    event: str
    text: str


def events() -> list[Event]:
    return sorted(
        event
        for path in _PACKAGE.rglob("*.py")
        if _PACKAGE / "testing" not in path.parents
        for event in _events(path)
        if event.level != "debug"
    )


def reference() -> str:
    return _HEADER + "".join(
        line
        for component, group in groupby(events(), lambda event: event.component)
        for line in _section(component, group)
    )


def _section(component: str, group: Iterator[Event]) -> Iterator[str]:
    yield f"\n## {component}\n\n| event | level | text |\n| --- | --- | --- |\n"
    for event in group:
        text = event.text.replace("|", "\\|")
        code = f"`` {text} ``" if "`" in text else f"`{text}`"
        yield f"| `{event.event}` | {event.level} | {code} |\n"


def _events(path: Path) -> Iterator[Event]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = path.relative_to(_PACKAGE).with_suffix("").parts
    component = _logger_name(tree) or ".".join(names).removesuffix(".__init__")
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            found = _event(component, node, node.func)
            if found is not None:
                yield found


def _event(component: str, call: ast.Call, function: ast.Attribute) -> Event | None:
    if function.attr == "warn_rarely":
        # The hub logs for its sessions.
        level, index, component = "warning", 1, "network.session_hub"
    elif function.attr in _METHODS and _is_logger(function.value):
        level, index = function.attr.replace(_EXCEPTION, "error"), 0
    elif function.attr == "log" and _is_logger(function.value):
        level, index = "varies", 1
    else:
        return None
    text = _constant(call.args[index]) if len(call.args) > index else None
    named = next(
        (_template(keyword.value) for keyword in call.keywords if keyword.arg == "extra"), None
    )
    template = named or text
    if template is None:
        return None  # It passes on messages of others.
    return Event(component, level, event_of(template), template)


def _logger_name(tree: ast.Module) -> str | None:
    """The logger's name, if it is not that of its module."""
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call)
            and ast.unparse(node.value.func) == "logging.getLogger"
        ):
            name = _constant(node.value.args[0])
            return None if name is None else name.removeprefix("ottla.")
    return None


def _is_logger(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name in _LOGGERS


def _constant(node: ast.expr) -> str | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str) else None


def _template(node: ast.expr) -> str | None:
    if not isinstance(node, ast.Dict):
        return None
    pairs = zip(node.keys, node.values, strict=True)
    return next((_constant(value) for key, value in pairs if _is_template(key)), None)


def _is_template(node: ast.expr | None) -> bool:
    return node is not None and _constant(node) == "template"


if __name__ == "__main__":
    sys.stdout.write(reference())
