"""The programs of docs/testing.md run, and its tests pass."""

import os
from pathlib import Path

import pytest
from tests.docs.blocks import FENCE, Step, run, run_tests, steps_of
from tests.fork_server import REPOSITORY

DOCUMENT = REPOSITORY / "docs/testing.md"
STEPS = [step for step in steps_of(DOCUMENT) if "\ndef test_" not in step.command[-1]]
TESTS = [block[2] for block in FENCE.finditer(DOCUMENT.read_text()) if "\ndef test_" in block[2]]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"line-{step.line}")
def test_programs_print_what_is_shown(step: Step, tmp_path: Path) -> None:
    run(step, tmp_path, _environment())


def test_tests_pass(tmp_path: Path) -> None:
    assert len(TESTS) == 2
    printed = run_tests(TESTS, tmp_path, _environment())
    assert "3 passed" in printed, printed


def _environment() -> dict[str, str]:
    return dict(os.environ) | {"PYTHONPATH": str(REPOSITORY / "src")}
