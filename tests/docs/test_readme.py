"""Every block of the documents runs, in order, against a new broker."""

from pathlib import Path

import pytest
from tests.broker_process import BrokerProcess
from tests.cli.command import environment
from tests.docs.blocks import run, steps_of
from tests.fork_server import REPOSITORY, write_command

pytestmark = [pytest.mark.process, pytest.mark.timeout(1200)]


@pytest.mark.parametrize("document", ["README.md", "docs/cli.md", "docs/client.md"])
def test_the_blocks_do_what_they_show(document: str, tmp_path: Path) -> None:
    commands = tmp_path / "bin"
    write_command(commands)
    with BrokerProcess(tmp_path) as broker:
        values = environment(broker.bootstrap)
        values["PATH"] = f"{commands}:{values['PATH']}"
        for step in steps_of(REPOSITORY / document):
            run(step, tmp_path, values)
