"""Every HTTP example runs as a reader would run it, the page in a real browser."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fork_server import REPOSITORY
from tests.gateway.browser import Browser

from ottla.client import Producer
from ottla.testing import EmbeddedBroker
from ottla.testing.gateway import Gateway

pytestmark = pytest.mark.process

EXAMPLES = REPOSITORY / "examples/http"
PAGE = "live_page.py"
LAST_LINES = {
    "sqs.py": "sent 3 letters; undeliverable: dear nobody",
    "workers.py": "12 jobs done, 13 tries",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture(scope="module")
def environment(broker: EmbeddedBroker) -> Iterator[dict[str, str]]:
    with Gateway(broker.bootstrap_servers) as gateway:
        yield {**os.environ, "OTTLA_GATEWAY_URL": gateway.url, "PORT": "0"}


def test_every_example_is_run_and_listed() -> None:
    names = sorted(path.name for path in EXAMPLES.glob("*.py"))
    assert names == sorted([*LAST_LINES, PAGE])
    listed = (EXAMPLES / "README.md").read_text()
    assert all(f"[{name}]({name})" in listed for name in names)


@pytest.mark.parametrize("name", LAST_LINES)
def test_the_example_does_what_it_says(name: str, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == LAST_LINES[name]


def test_the_page_shows_records_as_they_are_written(
    broker: EmbeddedBroker, environment: dict[str, str], tmp_path: Path
) -> None:
    broker.topic("prices")
    with (
        Browser(tmp_path) as browser,
        Producer(bootstrap_servers=broker.bootstrap_servers) as producer,
    ):
        server = subprocess.Popen(
            [sys.executable, str(EXAMPLES / PAGE)], env=environment, stdout=subprocess.PIPE
        )
        try:
            assert server.stdout is not None
            browser.open(server.stdout.readline().decode().split()[-1])
            producer.send("prices", {"item": "lamp", "cents": 4900}).result()
            wait_for_rows(browser, "lamp 49.00")
            producer.send("prices", {"item": "desk", "cents": 19900})
            producer.send("prices", {"item": "lamp", "cents": 3900}).result()
            wait_for_rows(browser, "lamp 39.00,desk 199.00")
        finally:
            server.kill()
            server.communicate()


def wait_for_rows(browser: Browser, wanted: str) -> None:
    browser.run_until_done(
        """
        const look = () => {
            const rows = [...document.getElementById("prices").rows];
            const shown = rows.map(row => [...row.cells].map(cell => cell.textContent).join(" "));
            shown.join(",") === arguments[0] ? done() : setTimeout(look, 20);
        };
        look();
        """,
        wanted,
    )
