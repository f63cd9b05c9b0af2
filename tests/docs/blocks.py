"""Runs the blocks of a document as its reader would.

console  lines with `$ ` are commands, the lines after one are what it prints
python   a program; an `output` block after it is what it prints

In shown output `...` stands for anything inside its line, and alone on a line for any lines.
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TIMEOUT_S = 600

ANY = "[^\n]*"
ANY_LINES = "(?:[^\n]*\n)*"


class Step(NamedTuple):
    command: list[str]
    shown: str | None  # None: the document does not show what it prints.
    line: int


def steps_of(document: Path) -> Iterator[Step]:
    text = document.read_text()
    blocks = list(FENCE.finditer(text))
    for number, block in enumerate(blocks):
        line = text.count("\n", 0, block.start()) + 1
        if block[1] == "console":
            yield from _commands(block[2], line)
        elif block[1] == "python":
            follows = blocks[number + 1] if number + 1 < len(blocks) else None
            shown = follows[2] if follows and follows[1] == "output" else None
            yield Step([sys.executable, "-c", block[2]], shown, line)


def _commands(block: str, line: int) -> Iterator[Step]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        while command.endswith("\\"):
            more, _, shown = shown.partition("\n")
            command += "\n" + more
        yield Step(["bash", "-o", "pipefail", "-c", command], shown, line)


def run(step: Step, directory: Path, environment: dict[str, str]) -> None:
    process = subprocess.run(
        step.command,
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    where = f"line {step.line}: {step.command[-1]}"
    assert process.returncode == 0, f"{where}\n{process.stdout}{process.stderr}"
    if step.shown is not None:
        assert matches(step.shown, process.stdout), f"{where}\n{process.stdout}"


def run_tests(tests: Sequence[str], directory: Path, environment: Mapping[str, str]) -> str:
    """Runs each as a pytest file; returns the output."""
    (directory / "pytest.ini").write_text("[pytest]\n")
    for number, text in enumerate(tests):
        (directory / f"test_{number}.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "ottla.testing.plugin"],
        cwd=directory,
        env={**environment, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


def matches(shown: str, printed: str) -> bool:
    pattern = ""
    for line in shown.splitlines():
        pattern += (
            ANY_LINES if line == "..." else ANY.join(map(re.escape, line.split("..."))) + "\n"
        )
    return re.fullmatch(pattern, printed) is not None
