"""Runs scenarios: texts of commands, each with its exact trace.

Empty lines separate blocks; a block has commands, a line of dashes and the trace. Set
OTTLA_REWRITE_SCENARIOS=1 to write the actual traces into the files; then review the diff.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "d": 86_400_000}


class TextScenario:
    def command(self, command: str) -> Iterable[str]:
        """Runs a command; returns its trace."""
        raise NotImplementedError

    def state(self) -> Iterable[str]:
        """The end of a block's trace."""
        return ()


def scenario_files(module: str) -> list[Path]:
    """The scenarios next to a module, given its `__file__`."""
    return sorted((Path(module).parent / "scenarios").glob("*.txt"))


def check_scenario(scenario: TextScenario, path: Path) -> None:
    expected = path.read_text()
    actual = run_scenario(scenario, expected)
    if os.environ.get("OTTLA_REWRITE_SCENARIOS"):
        path.write_text(actual)
    else:
        assert actual == expected


def run_scenario(scenario: TextScenario, text: str) -> str:
    """The same text with the traces of this run."""
    written = []
    for block in re.split(r"\n{2,}", text.strip()):
        commands = re.split(r"^-+$", block, maxsplit=1, flags=re.MULTILINE)[0].splitlines()
        active = [line for line in commands if not line.startswith("#")]
        trace = [line for command in active for line in scenario.command(command)]
        if active:
            trace = ["----", *trace, *scenario.state()]
        written.append("\n".join([*commands, *trace]))
    return "\n\n".join(written) + "\n"


def duration_ms(text: str) -> int:
    """Parses a duration such as `3s`."""
    found = re.fullmatch(r"(\d+)(\w+)", text)
    assert found is not None, text
    return int(found[1]) * _UNITS_MS[found[2]]
