"""Every block of the documents runs, in their order, against a new broker."""

import sys
from pathlib import Path

import pytest
from tests.broker_process import BrokerProcess
from tests.cli.command import environment
from tests.docs.blocks import run, steps_of
from tests.fork_server import REPOSITORY

pytestmark = [pytest.mark.process, pytest.mark.timeout(1200)]


@pytest.mark.parametrize("document", ["README.md", "docs/cli.md", "docs/client.md"])
def test_the_blocks_do_what_they_show(document: str, tmp_path: Path) -> None:
    commands = tmp_path / "bin"
    commands.mkdir()
    ottla = commands / "ottla"
    ottla.write_text(f'#!/bin/sh\nexec {sys.executable} -m ottla "$@"\n')
    ottla.chmod(0o755)
    with BrokerProcess(tmp_path) as broker:
        values = environment(broker.bootstrap)
        values["PATH"] = f"{commands}:{values['PATH']}"
        for step in steps_of(REPOSITORY / document):
            run(step, tmp_path, values)
