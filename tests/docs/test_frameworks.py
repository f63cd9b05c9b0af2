"""The programs of docs/frameworks run: the first is `tasks.py`, the second sends tasks to a worker
that is started as the page says; the others are tests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.blocks import FENCE, run_tests
from tests.fork_server import REPOSITORY
from tests.integrations.processes import Worker, wait_until

from ottla.testing import EmbeddedBroker

PAGES = sorted(
    path for path in (REPOSITORY / "docs/frameworks").glob("*.md") if path.name != "README.md"
)


@pytest.mark.process
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_worker_of_the_page_does_its_tasks(page: Path, tmp_path: Path) -> None:
    blocks = [(block[1], block[2]) for block in FENCE.finditer(page.read_text())]
    tasks, sender, *tests = [text for kind, text in blocks if kind == "python"]
    command = next(text for kind, text in blocks if kind == "sh").split()
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{REPOSITORY / 'src'}"}
    with EmbeddedBroker() as broker:
        server = broker.bootstrap_servers
        (tmp_path / "tasks.py").write_text(tasks.replace("localhost:9092", server))
        with Worker(command, tmp_path) as worker:
            subprocess.run([sys.executable, "-c", sender], env=environment, check=True)
            wait_until(
                lambda: all(f"a mail to {name}" in worker.log_text() for name in ("anna", "ben")),
                "both mails",
                worker,
            )
    if tests:
        printed = run_tests(tests, tmp_path, environment)
        assert f"{len(tests)} passed" in printed, printed
