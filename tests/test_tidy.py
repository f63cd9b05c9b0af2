"""House rules that no other tool checks.

What exceeds a limit today is listed, so that the lists only get shorter.
"""

import ast
import re
import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from ottla.handlers.api import ColdApi, HotApi
from ottla.handlers.table import API_TABLE

pytestmark = pytest.mark.xdist_group("tidy")  # So that each file is parsed once.

ROOT = Path(__file__).parent.parent
TESTS_ROOT = ROOT / "tests"
SOURCES = sorted((ROOT / "src").rglob("*.py"))
TESTS = sorted(TESTS_ROOT.rglob("*.py"))

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
POSITIONAL_MAX = 6

LONG_FUNCTIONS = {"ottla/cli/serve.py:serve"}  # One parameter per option.
MANY_POSITIONAL = {  # Public signatures, and code that runs for each message.
    "ottla/client/aio/producer.py:send",
    "ottla/client/messages.py:of",
    "ottla/client/producer.py:send",
    "ottla/client/producer.py:send_now",
}

_BLOCKING_AND_ASYNCIO = {"Admin", "Cluster", "Connection", "Consumer", "Producer"}
_BLOCKING_AND_ASYNCIO |= {"ShareConsumer", "Transaction"}
_WHOLE_AND_HOT = {"FetchRequest", "ForgottenTopic", "OffsetCommitRequest", "ProduceRequest"}
_PARTS_OF_MESSAGES = {"PartitionData", "PartitionResult", "TopicResult"}  # Kafka's terms.
_OF_TWO_KINDS_OF_GROUPS = {"MemberSpec", "TopicInfo"}
AUDIT = ("ottla.node.audit", "ottla.audit")  # Operators give it its own file.
TWICE = {
    *(("client", name) for name in _BLOCKING_AND_ASYNCIO),
    *(("protocol", name) for name in _WHOLE_AND_HOT | _PARTS_OF_MESSAGES),
    *(("groups", name) for name in _OF_TWO_KINDS_OF_GROUPS),
    ("integrations", "OttlaBroker"),  # Required by Dramatiq and Taskiq.
    ("pyspark_ottla", "DefaultSource"),  # Spark looks for this name in a module.
    *(("pyspark_ottla", name) for name in ("Claim", "Outcome", "Step", "TaskMessage")),
    ("testing", "Faults"),  # For embedded and simulated clusters.
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def name_of(path: Path) -> str:
    return path.relative_to(ROOT / "src").as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def functions() -> list[tuple[str, Function]]:
    """Functions by the name used in the lists above."""
    return [
        (f"{name_of(path)}:{node.name}", node)
        for path in SOURCES
        for node in ast.walk(tree_of(path))
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
def test_a_handler_opens_with_the_versions_that_the_table_serves(api: HotApi | ColdApi) -> None:
    module = api.module.__name__ if isinstance(api, ColdApi) else api.handle.__module__
    path = ROOT / "src" / f"{module.replace('.', '/')}.py"
    docstring = ast.get_docstring(tree_of(path))
    assert docstring is not None
    header = re.match(r"(\w+) \((\d+)\): v(\d+)(?:-v(\d+))?\b", docstring)
    assert header is not None, f"{path.name} opens with no name, key and versions"
    name, key, low, high = header.groups()
    assert (name, int(key), int(low), int(high or low)) == (api.name, api.key, api.low, api.high)


def packages() -> set[str]:
    return {path.parent.name for path in (ROOT / "src/ottla").glob("*/__init__.py")}


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "docs/internals/map.md"])
def test_every_package_is_in_the_documents_for_developers(document: str) -> None:
    table = (ROOT / document).read_text()
    assert {name for name in packages() if f"\n| `{name}`" not in table} == set()


def test_files_that_the_documents_for_developers_name_are_there() -> None:
    documents = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]
    documents += (ROOT / "docs/internals").glob("*.md")
    files = [f"/{path.relative_to(ROOT).as_posix()}" for path in (*SOURCES, *TESTS)]
    named = {
        (document.name, file)
        for document in documents
        for file in re.findall(r"`([\w./]+\.py)`", document.read_text())
    }
    assert {(name, file) for name, file in named if not "\n".join(files).count(f"/{file}")} == set()


def test_contributing_lists_the_pure_packages_and_the_tests_that_mirror_none() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (pure,) = (
        {name.removeprefix("ottla.") for name in contract["source_modules"]}
        for contract in contracts["contracts"]
        if contract["name"].startswith("Pure packages")
    )
    rule = text[text.index("**Pure packages**") :].split("decide", 1)[0]
    assert set(re.findall(r"`(\w+)`", rule)) == pure
    folders = {
        path.relative_to(ROOT / "tests").parts[0] for path in TESTS if path.parent != TESTS_ROOT
    }
    assert {name for name in folders - packages() if f"\n| `tests/{name}`" not in text} == set()


def test_a_module_logs_under_its_own_name_or_that_of_its_package() -> None:
    """So that levels can be set by package, and documents name only a few loggers."""
    others = set()
    for path in SOURCES:
        module = name_of(path).removesuffix(".py").replace("/", ".")
        for node in tree_of(path).body:
            if not (isinstance(node, ast.Assign) and "getLogger(" in ast.unparse(node.value)):
                continue
            assert ast.unparse(node.targets[0]) == "logger", module
            assert isinstance(node.value, ast.Call)
            name = ast.unparse(node.value.args[0]).strip("'")
            if name != "__name__" and not module.startswith(name):
                others.add((module, name))
    assert others == {AUDIT}


def test_a_package_has_each_public_class_once() -> None:
    """So that names are easy to look up. Several packages may use the field's common names."""
    modules: dict[tuple[str, str], set[str]] = defaultdict(set)
    for path in SOURCES:
        root, *parts = name_of(path).removesuffix(".py").split("/")
        package = parts[0] if root == "ottla" else root
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[package, node.name].add("/".join(parts))
    twice = {key for key, found in modules.items() if len(found) > 1}
    assert twice == TWICE
