"""The blocks of docs/spark.md do what they show, in the session of the other tests."""

import contextlib
import io
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.broker_process import BrokerProcess
from tests.cli.command import environment
from tests.docs.blocks import matches, run, steps_of
from tests.fork_server import REPOSITORY


def test_the_blocks_do_what_they_show(
    spark: Any, own_broker: BrokerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, arguments in (("ottla", "-m ottla"), ("python", "")):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {arguments} "$@"\n')
        program.chmod(0o755)
    monkeypatch.setenv("OTTLA_BOOTSTRAP_SERVER", own_broker.bootstrap)
    values = environment(own_broker.bootstrap)
    values["PATH"] = f"{tmp_path}{os.pathsep}{values['PATH']}"
    names: dict[str, Any] = {}
    for step in steps_of(REPOSITORY / "docs" / "spark.md"):
        if step.command[0] != sys.executable:
            run(step, tmp_path, values)
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(step.command[-1], f"docs/spark.md:{step.line}", "exec"), names)
        if step.shown is not None:
            assert matches(step.shown, printed.getvalue()), printed.getvalue()
