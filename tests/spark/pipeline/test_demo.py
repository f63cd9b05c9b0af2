"""`ottla demo pipeline` checks its own totals; here it is small."""

import re
from pathlib import Path

import pytest
from tests.cli.command import start_ottla

TIMEOUT_S = 1200


@pytest.mark.timeout(TIMEOUT_S + 60)
def test_the_totals_are_right_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    process = start_ottla("demo", "pipeline", "--seconds", "2", "--rate", "200")
    try:
        output, errors = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0, errors.decode()
    assert "all are right, and none is there twice" in output.decode()
    assert "demo.totals: batch 0 in " in errors.decode()
    shown = re.findall(r"demo\.totals: batch .* so far (\d+) rows in", errors.decode())
    assert output.decode().startswith(f"{shown[-1]} rows: ")
    assert not list(tmp_path.glob("ottla-demo-*"))
