"""The blocks of docs/tables.md do what they show, in the session of the other tests."""

import contextlib
import io
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.broker_process import BrokerProcess
from tests.cli.command import environment
from tests.docs import blocks
from tests.fork_server import REPOSITORY
from tests.spark.deployments import shared_java

START_TIMEOUT_S = 600  # Some commands start Spark.


@pytest.mark.timeout(1800)
def test_the_blocks_do_what_they_show(
    spark: Any, own_broker: BrokerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ottla = tmp_path / "ottla"
    ottla.write_text(f'#!/bin/sh\nexec {sys.executable} -m ottla "$@"\n')
    ottla.chmod(0o755)
    monkeypatch.setattr(blocks, "TIMEOUT_S", START_TIMEOUT_S)
    monkeypatch.chdir(tmp_path)
    values = environment(own_broker.bootstrap)
    values["PATH"] = f"{tmp_path}{os.pathsep}{values['PATH']}"
    names: dict[str, Any] = {}
    with shared_java(tmp_path) as variables:
        for step in blocks.steps_of(REPOSITORY / "docs" / "tables.md"):
            if step.command[0] != sys.executable:
                blocks.run(step, tmp_path, values | variables)
                continue
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(step.command[-1], f"docs/tables.md:{step.line}", "exec"), names)
            if step.shown is not None:
                assert blocks.matches(step.shown, printed.getvalue()), printed.getvalue()
