"""Every client example runs as a reader would run it."""

import os
import subprocess
import sys

import pytest
from tests.fork_server import REPOSITORY

from ottla.testing import EmbeddedBroker

EXAMPLES = REPOSITORY / "examples/clients"

# The last line, or its first words.
LAST_LINES = {
    "backpressure.py": "200 pictures, paused",
    "fault_tolerance.py": "True",
    "high_throughput.py": "wrote 5000 records,",
    "manual_commits.py": "booked payment 5, try 1",
    "order_service.py": "120 orders shipped, each customer's in order: True",
    "simple.py": "read cleo from offset 2",
    "transactions.py": "the sums add up to 1770, the orders to 1770",
}


def test_every_example_is_run_and_listed() -> None:
    names = sorted(path.name for path in EXAMPLES.glob("*.py"))
    assert names == sorted(LAST_LINES)
    listed = (EXAMPLES / "README.md").read_text()
    assert all(f"[{name}]({name})" in listed for name in names)


@pytest.mark.parametrize("name", LAST_LINES)
def test_the_example_does_what_it_says(name: str) -> None:
    arguments = ["5000"] if name == "high_throughput.py" else []
    with EmbeddedBroker() as broker:
        done = subprocess.run(
            [sys.executable, str(EXAMPLES / name), *arguments],
            env={**os.environ, "OTTLA_BOOTSTRAP_SERVER": broker.bootstrap_servers},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith(LAST_LINES[name]), done.stdout
