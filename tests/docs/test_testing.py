"""The programs of docs/testing.md run, and its tests pass."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.blocks import FENCE, run, steps_of
from tests.fork_server import REPOSITORY

DOCUMENT = REPOSITORY / "docs/testing.md"
STEPS = [step for step in steps_of(DOCUMENT) if "\ndef test_" not in step.command[-1]]
TESTS = [block[2] for block in FENCE.finditer(DOCUMENT.read_text()) if "\ndef test_" in block[2]]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"line-{step.line}")
def test_programs_print_what_is_shown(step, tmp_path: Path) -> None:
    run(step, tmp_path, _environment())


def test_tests_pass(tmp_path: Path) -> None:
    assert len(TESTS) == 2
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    for number, text in enumerate(TESTS):
        (tmp_path / f"test_{number}.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "ottla.testing.plugin"],
        cwd=tmp_path,
        env=_environment() | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert "3 passed" in done.stdout, done.stdout


def _environment() -> dict[str, str]:
    return dict(os.environ) | {"PYTHONPATH": str(REPOSITORY / "src")}
