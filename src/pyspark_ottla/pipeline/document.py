"""A YAML file whose values know their line numbers.

A `Section` is one mapping of the file. Reading an invalid key notes a problem and returns a
stand-in, so that one pass over a file finds all its problems.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from pyspark_ottla.pipeline.problems import Problem

_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_NULL_TAG = "tag:yaml.org,2002:null"


class Text(str):
    """A text of the file."""

    __slots__ = ("line",)
    line: int  # Of its first character.

    def __new__(cls, text: str = "", line: int = 0) -> "Text":
        self = super().__new__(cls, text)
        self.line = line
        return self


@dataclass
class Document:
    problems: list[Problem] = field(default_factory=list)
    variables: Mapping[str, str] = field(default_factory=dict)

    def note(self, line: int, message: str) -> None:
        self.problems.append(Problem(line, message))


def read_document(text: str, document: Document) -> "Section | None":
    """The file's mapping; None, with a problem noted, if it is not one."""
    try:
        node = yaml.compose(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = " ".join(filter(None, (error.context, error.problem)))
        document.note(mark.line + 1 if mark else 0, f"this is not YAML: {reason}")
        return None
    except yaml.YAMLError as error:
        document.note(0, f"this is not YAML: {error}")
        return None
    if not isinstance(node, yaml.MappingNode):
        document.note(1, "a pipeline is a mapping with name, sources and sinks")
        return None
    return Section(node, "the pipeline", document)


class Section:
    """`title` describes it to readers of a problem."""

    def __init__(self, node: yaml.MappingNode, title: str, document: Document) -> None:
        self.title = title
        self.line = node.start_mark.line + 1
        self.document = document
        self._nodes: dict[str, yaml.Node] = {}
        self._lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            self._add(key_node, value_node)

    def note(self, key: str, message: str) -> None:
        """Note a problem with the value of a key."""
        self.document.note(self.line_of(key), f"{self.title}: {message}")

    def line_of(self, key: str) -> int:
        return self._lines.get(key, self.line)

    def __contains__(self, key: str) -> bool:
        return key in self._nodes

    def note_unknown(self, keys: Iterable[str]) -> None:
        """Note keys that are not among these."""
        known = list(keys)
        for key in self._nodes:
            if key in known:
                continue
            nearest = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {nearest[0]}?" if nearest else f"there are {', '.join(known)}"
            self.note(key, f"there is no key {key}; {hint}")

    def text(self, key: str, *, default: str = "", is_needed: bool = False) -> Text:
        """A plain value as text, with its variables replaced."""
        node = self._nodes.get(key)
        if node is None or node.tag == _NULL_TAG:
            if is_needed:
                self.note(key, f"{key} is missing")
            return Text(default, self.line_of(key))
        if not isinstance(node, yaml.ScalarNode):
            self.note(key, f"{key} must be a text")
            return Text(default, self.line_of(key))
        return self._scalar(node)

    def choice(self, key: str, choices: Sequence[str], default: str) -> str:
        text = self.text(key, default=default)
        if text not in choices:
            self.note(key, f"{key} is {text!r}; it can be {', '.join(choices)}")
            return default
        return str(text)

    def flag(self, key: str) -> bool:
        return self.choice(key, ("true", "false"), "false") == "true"

    def positive(self, key: str) -> int | None:
        text = self.text(key)
        if not text:
            return None
        if not text.isdecimal() or int(text) < 1:
            self.note(key, f"{key} is {text!r} and must be a whole number from 1 on")
            return None
        return int(text)

    def texts(self, key: str) -> list[Text]:
        """One text, or a list of them."""
        node = self._nodes.get(key)
        if not isinstance(node, yaml.SequenceNode):
            text = self.text(key)
            return [text] if text else []
        items = [item for item in node.value if isinstance(item, yaml.ScalarNode)]
        if len(items) != len(node.value):
            self.note(key, f"{key} must be a list of texts")
        return [self._scalar(item) for item in items]

    def section(self, key: str, title: str = "", example: str = "") -> "Section | None":
        """None if missing; anything but a mapping is a problem, explained by an example."""
        node = self._nodes.get(key)
        if node is None or node.tag == _NULL_TAG:
            return None
        if not isinstance(node, yaml.MappingNode):
            self.note(key, f"{key} must be a mapping" + (f", as {example}" if example else ""))
            return None
        return Section(node, title or f"{key} of {self.title}", self.document)

    def sections(self, kind: str, example: str) -> Iterator[tuple[Text, "Section"]]:
        """Every value by name, if all are mappings; `kind` says what each of them is."""
        for name in self._nodes:
            section = self.section(name, f"{kind} {name}", example)
            if section is not None:
                yield Text(name, self.line_of(name)), section
            elif self._nodes[name].tag == _NULL_TAG:
                self.note(name, f"{name} is empty")

    def mapping(self, key: str) -> dict[str, str]:
        section = self.section(key)
        return {} if section is None else section.plain()

    def plain(self) -> dict[str, str]:
        """All its values as text."""
        return {name: str(self.text(name)) for name in self._nodes}

    def _add(self, key_node: yaml.Node, value_node: yaml.Node) -> None:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            self.document.note(line, f"{self.title}: a key must be a text")
            return
        key = str(key_node.value)
        if key in self._nodes:
            self.document.note(line, f"{self.title}: {key} is there twice")
        self._nodes[key] = value_node
        self._lines[key] = line

    def _scalar(self, node: Any) -> Text:
        line = node.start_mark.line + 1
        if node.style in ("|", ">"):
            line += 1  # The mark is at the block indicator; the text begins below it.
        value = node.value
        if node.tag == "tag:yaml.org,2002:bool":
            value = str(yaml.safe_load(value)).lower()
        return Text(_VARIABLE.sub(lambda match: self._variable(match, line), value), line)

    def _variable(self, match: "re.Match[str]", line: int) -> str:
        name = match[1]
        if name in self.document.variables:
            return self.document.variables[name]
        known = ", ".join(self.document.variables) or "none"
        hint = f"add it under variables (there are: {known}) or give --set {name}=..."
        self.document.note(line, f"{self.title}: there is no variable {name}; {hint}")
        return ""
