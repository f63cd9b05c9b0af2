"""Every command of docs/OPERATIONS.md, in order, with real nodes."""

import re
from pathlib import Path

import pytest
from tests.cli.command import environment
from tests.docs.blocks import Step, matches, steps_of
from tests.docs.shell import Shell
from tests.fork_server import REPOSITORY, write_command
from tests.ports import ReservedPort

pytestmark = [pytest.mark.process, pytest.mark.timeout(1200)]

TIMEOUT_S = 300
PORTS = ("9092", "9093", "9094", "9095")

# Slow nodes must not be declared dead, or the lists would show it.
PATIENT = {
    "OTTLA_BROKER_SESSION_TIMEOUT_MS": "10000",
    "OTTLA_CONTROLLER_QUORUM_FETCH_TIMEOUT_MS": "5000",
    # Nodes are started without waiting for the one that they join.
    "OTTLA_QUORUM_JOIN_TIMEOUT_MS": "60000",
}

# A node that was killed ends with the number of the signal.
ENDS_BY_SIGNAL = re.compile(r"^kill -9 ")


def test_the_blocks_do_what_they_show(tmp_path: Path) -> None:
    commands = tmp_path / "bin"
    write_command(commands)
    values = environment()
    values["PATH"] = f"{commands}:{values['PATH']}"
    values |= PATIENT
    ports = {documented: ReservedPort() for documented in PORTS}
    try:
        with Shell(tmp_path, values) as shell:
            for step in steps_of(REPOSITORY / "docs" / "OPERATIONS.md"):
                command = re.sub(
                    "|".join(PORTS), lambda found: str(ports[found[0]]), step.command[-1]
                )
                run(shell, command, step)
    finally:
        print(logs(tmp_path))


def run(shell: Shell, command: str, step: Step) -> None:
    code, printed = shell.run(command, TIMEOUT_S)
    where = f"line {step.line}: {command}\n{printed}"
    if not ENDS_BY_SIGNAL.match(command):
        assert code == 0, where
        if step.shown is not None:
            assert matches(step.shown, without_notices(printed)), where


def without_notices(printed: str) -> str:
    """Without the shell's job messages, and progress on stderr."""
    notices = r"^(\[\d+\].*|.*Killed.*|\d+ of \d+ partitions done.*)\n"
    return re.sub(notices, "", printed, flags=re.MULTILINE)


def logs(directory: Path) -> str:
    return "".join(
        f"--- {path.name}\n{path.read_text()[-3000:]}" for path in directory.glob("*.log")
    )
