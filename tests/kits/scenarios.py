"""Runs scenarios: texts of commands, each with the exact trace of what it brought about.

Blocks are parted by empty lines; in a block the commands come first, then a line of dashes and the
trace. Set OTTLA_REWRITE_SCENARIOS=1 to write what happens into the files; then read the difference.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "d": 86_400_000}


class TextScenario:
    def command(self, command: str) -> Iterable[str]:
        """Do it; returns its trace."""
        raise NotImplementedError

    def state(self) -> Iterable[str]:
        """What the trace of a block ends with."""
        return ()


def scenario_files(module: str) -> list[Path]:
    """Those beside a module, which says its `__file__`."""
    return sorted((Path(module).parent / "scenarios").glob("*.txt"))


def check_scenario(scenario: TextScenario, path: Path) -> None:
    expected = path.read_text()
    actual = run_scenario(scenario, expected)
    if os.environ.get("OTTLA_REWRITE_SCENARIOS"):
        path.write_text(actual)
    else:
        assert actual == expected


def run_scenario(scenario: TextScenario, text: str) -> str:
    """The same text with the traces that this run gave."""
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
    """Of `3s`, for one."""
    found = re.fullmatch(r"(\d+)(\w+)", text)
    assert found is not None, text
    return int(found[1]) * _UNITS_MS[found[2]]
