"""What a query keeps in its state, read from the plan that Spark prints.

Spark prints plans as text everywhere, including behind Spark Connect. A stateful operator is shown
here with its expressions expanded down to source columns: `group by window` names a column, and
only that column's definition says how long a window is.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_HEADING = re.compile(r"== Analyzed Logical Plan ==\n.*?\n(.*?)(?=\n== |\Z)", re.DOTALL)
_LINE = re.compile(r"^([ :+-]*)[~'!]*([A-Z]\w*)\s?(.*)$")
_COLUMN = re.compile(r"([A-Za-z_]\w*)#(\d+)L?(?:-T\d+ms)?")
_DEFINITION = re.compile(r"^(.*) AS ([^#]*)#(\d+)L?(?:-T\d+ms)?$", re.DOTALL)
_ALIAS = re.compile(r" AS [^#]*#\d+L?(?:-T\d+ms)?$")
# Ids of unnamed expressions, such as Python functions, and addresses of Java objects.
_PASSING = re.compile(r"(?<=\))#\d+L?(?:-T\d+ms)?|@[0-9a-f]+\b")
_STATEFUL = ("Aggregate", "Distinct", "Deduplicate", "FlatMapGroups", "TransformWithState")
_SOURCES = ("StreamingRelation", "StreamingDataSourceV2")
_DEPTH_MAX = 20


class Node(NamedTuple):
    depth: int
    name: str
    detail: str


def read_nodes(text: str) -> list[Node]:
    """The analyzed plan in Spark's explanation of a query, parents before children."""
    found = _HEADING.search(text)
    nodes = []
    for line in found[1].splitlines() if found else ():
        match = _LINE.match(line)
        if match:
            nodes.append(Node(len(match[1]), match[2], match[3]))
    return nodes


def find_state(nodes: list[Node]) -> list[str]:
    """The stateful operators, from the last to the first that rows pass through."""
    definitions = _definitions(nodes)
    return [
        _spelled_out(node, definitions)
        for index, node in enumerate(nodes)
        if node.name.startswith(_STATEFUL) or _joins_streams(nodes, index)
    ]


def find_sources(nodes: list[Node], known: set[str]) -> list[str]:
    """Source names in the order that Spark uses in a checkpoint."""
    found, name = [], ""
    for node in nodes:
        if node.name == "SubqueryAlias" and node.detail in known:
            name = node.detail
        if node.name.startswith(_SOURCES):
            found.append(name)
    return found


def _joins_streams(nodes: list[Node], index: int) -> bool:
    node = nodes[index]
    if node.name != "Join":
        return False
    below = []
    for each in nodes[index + 1 :]:
        if each.depth <= node.depth:
            break
        below.append(each)
    return sum(each.name.startswith(_SOURCES) for each in below) > 1


def _definitions(nodes: list[Node]) -> dict[str, str]:
    """Column definitions by column number."""
    found: dict[str, str] = {}
    for node in nodes:
        for item in _items(node.detail):
            match = _DEFINITION.match(item)
            if match:
                found[match[3]] = match[1]
        if node.name == "Expand":  # One row for each window that a time falls into.
            expanded, _, columns = node.detail.rpartition("], [")
            for column in _COLUMN.finditer(columns):
                if column[1] in ("window", "session_window"):
                    found[column[2]] = expanded
    return found


def _items(detail: str) -> Iterator[str]:
    """The members of the top-level bracketed lists."""
    depth, start = 0, 0
    for position, sign in enumerate(detail):
        if sign in "[(":
            depth += 1
            if depth == 1:
                start = position + 1
        elif sign in "])":
            depth -= 1
            if depth == 0:
                yield detail[start:position].strip()
        elif sign == "," and depth == 1:
            yield detail[start:position].strip()
            start = position + 1


def _spelled_out(node: Node, definitions: dict[str, str]) -> str:
    detail = node.detail
    if node.name == "Aggregate":
        keys, computed = _lists(detail)
        # Names and order of the results, and results computed from keys alone, may change.
        results = [_ALIAS.sub("", item) for item in _items(computed)]
        kept = sorted(_expand(item, definitions) for item in results if not _is_of_keys(item, keys))
        groups = ", ".join(_expand(item, definitions) for item in _items(keys))
        detail = f"by {groups}: {', '.join(kept)}"
    else:
        detail = _expand(detail, definitions)
    return _PASSING.sub("", f"{node.name} {detail}").strip()


def _is_of_keys(item: str, keys: str) -> bool:
    numbers = {match[2] for match in _COLUMN.finditer(item)}
    return bool(numbers) and numbers <= {match[2] for match in _COLUMN.finditer(keys)}


def _lists(detail: str) -> tuple[str, str]:
    """Split `[a, b], [c]` into its two lists; Spark omits the first if it is empty."""
    parts: list[str] = []
    depth = start = 0
    for position, sign in enumerate(detail):
        if sign == "[":
            start = position if depth == 0 else start
            depth += 1
        elif sign == "]":
            depth -= 1
            if depth == 0:
                parts.append(detail[start : position + 1])
    return (parts[0], parts[1]) if len(parts) > 1 else ("", "".join(parts))


def _expand(text: str, definitions: dict[str, str], depth: int = 0) -> str:
    def replace(match: "re.Match[str]") -> str:
        definition = definitions.get(match[2])
        if definition is None or depth >= _DEPTH_MAX:
            return match[1]
        return _expand(definition, definitions, depth + 1)

    return _COLUMN.sub(replace, text)
