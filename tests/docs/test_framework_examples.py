"""The framework examples run as a reader would run them."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.fork_server import REPOSITORY
from tests.integrations.processes import Worker, wait_until
from tests.ports import HOST, ReservedPort

from ottla.testing import EmbeddedBroker

pytestmark = pytest.mark.process

EXAMPLES = REPOSITORY / "examples/frameworks"
SERVICE = "fastapi_service.py"
WORKERS = ["celery_worker.py", "dramatiq_worker.py", "taskiq_worker.py"]
DONE = {("sunny", "1"), ("cloudy", "2"), ("evening", "1")}


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


def command_of(name: str) -> list[str]:
    listed = (EXAMPLES / "README.md").read_text()
    row = re.search(rf"\[{name}\]\({name}\) \| `(.+?)`", listed)
    assert row is not None
    return row[1].split()


def test_every_example_is_listed() -> None:
    names = sorted(path.name for path in EXAMPLES.glob("*.py"))
    assert names == sorted([*WORKERS, SERVICE])
    assert all(command_of(name) for name in names)


@pytest.mark.parametrize("name", WORKERS)
def test_the_worker_does_its_tasks(name: str, broker: EmbeddedBroker, tmp_path: Path) -> None:
    environment = {
        "OTTLA_BOOTSTRAP_SERVER": broker.bootstrap_servers,
        "PYTHONPATH": f"{EXAMPLES}:{REPOSITORY / 'src'}",
    }
    (tmp_path / name).symlink_to(EXAMPLES / name)
    with Worker(command_of(name), tmp_path, **environment) as worker:
        subprocess.run(
            [sys.executable, str(EXAMPLES / name)], env={**os.environ, **environment}, check=True
        )
        wait_until(
            lambda: set(re.findall(r"resized (\w+).png, try (\d)", worker.log_text())) == DONE,
            "all pictures",
            worker,
        )


def test_the_service_publishes_orders(broker: EmbeddedBroker, tmp_path: Path) -> None:
    port = ReservedPort()
    (tmp_path / SERVICE).symlink_to(EXAMPLES / SERVICE)
    command = [*command_of(SERVICE), "--host", HOST, "--port", str(port.number)]
    with Worker(command, tmp_path, OTTLA_BOOTSTRAP_SERVER=broker.bootstrap_servers) as service:
        url = f"http://{HOST}:{port.number}/orders"
        wait_until(lambda: "Uvicorn running" in service.log_text(), "the service", service)
        answer = httpx.post(url, json={"customer": "anna", "amount": 12}, timeout=60)
        assert answer.status_code == 202, answer.text
        assert httpx.post(url, json={"customer": "anna"}, timeout=60).status_code == 422
    (record,) = broker.records("orders")
    assert (record.key, record.value) == (b"anna", b'{"customer": "anna", "amount": 12}')
    assert answer.json() == {"partition": record.partition, "offset": record.offset}
