"""Rules of the house that no other tool keeps.

What is over a limit today is listed, so that the lists only get shorter.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from ottla.handlers.api import ColdApi
from ottla.handlers.table import API_TABLE

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
POSITIONAL_MAX = 6

LONG_FUNCTIONS = {"ottla/cli/serve.py:serve"}  # One parameter for each option.
MANY_POSITIONAL = {  # Public signatures, and what runs once for each message.
    "ottla/client/aio/producer.py:send",
    "ottla/client/messages.py:of",
    "ottla/client/producer.py:send",
    "ottla/client/producer.py:send_now",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def name_of(path: Path) -> str:
    return path.relative_to(ROOT / "src").as_posix()


@cache
def functions() -> list[tuple[str, Function]]:
    """With the name that the lists above give them."""
    return [
        (f"{name_of(path)}:{node.name}", node)
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, Function)
    ]


def length_of(function: Function) -> int:
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


def positional_count(function: Function) -> int:
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def test_files_are_short() -> None:
    lengths = {name_of(path): path.read_text().count("\n") for path in SOURCES}
    assert {name for name, length in lengths.items() if length > FILE_LINES_MAX} == set()


def test_functions_are_short() -> None:
    long = {name for name, function in functions() if length_of(function) > FUNCTION_LINES_MAX}
    assert long <= LONG_FUNCTIONS


def test_what_has_many_parameters_takes_them_by_name() -> None:
    many = {name for name, function in functions() if positional_count(function) > POSITIONAL_MAX}
    assert many <= MANY_POSITIONAL


@pytest.mark.parametrize("api", API_TABLE.values(), ids=lambda api: api.name)
def test_a_handler_opens_with_the_versions_that_the_table_serves(api) -> None:
    module = api.module.__name__ if isinstance(api, ColdApi) else api.handle.__module__
    path = ROOT / "src" / f"{module.replace('.', '/')}.py"
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    assert docstring is not None
    header = re.match(r"(\w+) \((\d+)\): v(\d+)(?:-v(\d+))?\b", docstring)
    assert header is not None, f"{path.name} opens with no name, key and versions"
    name, key, low, high = header.groups()
    assert (name, int(key), int(low), int(high or low)) == (api.name, api.key, api.low, api.high)


def test_every_package_is_in_the_architecture() -> None:
    packages = {path.parent.name for path in (ROOT / "src/ottla").glob("*/__init__.py")}
    table = (ROOT / "ARCHITECTURE.md").read_text()
    assert {name for name in packages if f"\n| `{name}`" not in table} == set()
