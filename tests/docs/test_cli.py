"""docs/cli.md has every command and every option, and no others."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import App

from ottla.cli.examples import EXAMPLES
from ottla.cli.main import app

DOCUMENT = Path(__file__).parents[2] / "docs" / "cli.md"
COMMON_OPTIONS = {
    "--bootstrap-server",
    "--command-config",
    "--connect-timeout",
    "--json",
    "--help",
    "--version",
}

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def commands(parent: App, words: tuple[str, ...] = ("ottla",)) -> Iterator[tuple[str, App]]:
    for name in parent:
        if not name.startswith("-"):
            command = parent[name]
            if command.default_command is not None:
                yield " ".join((*words, name)), command
            yield from commands(command, (*words, name))


COMMANDS = dict(commands(app))


def sections() -> dict[str, str]:
    parts = re.split(r"^## (.*)\n", DOCUMENT.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def options(name: str) -> set[str]:
    words = name.split()[1:]
    with app.app_stack(words):
        arguments = COMMANDS[name].assemble_argument_collection(parse_docstring=False)
    names = {name for argument in arguments for name in (*argument.names, *argument.negatives)}
    return {name for name in names if name.startswith("--")}


def test_every_command_has_its_section() -> None:
    assert sections().keys() == COMMANDS.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_described(name: str) -> None:
    described = set(OPTION.findall(sections()[name]))
    assert options(name) - COMMON_OPTIONS <= described


def test_no_other_option_is_described() -> None:
    existing = COMMON_OPTIONS.union(*(options(name) for name in COMMANDS))
    assert set(OPTION.findall(DOCUMENT.read_text())) <= existing


def test_every_command_has_an_example_that_can_be_typed() -> None:
    assert {f"ottla {words}" for words in EXAMPLES} == COMMANDS.keys()
    for example in EXAMPLES.values():
        typed = re.split(r" (?:\|\||>) ", example)[0]
        app.parse_args(shlex.split(typed)[1:], exit_on_error=False, print_error=False)
