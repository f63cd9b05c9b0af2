"""`ottla serve --http`: a gateway that starts, is kept and stops with its node."""

import os
import signal
import time
from pathlib import Path

import httpx
import pytest
from tests.broker_process import START_TIMEOUT_S, BrokerProcess
from tests.gateway.gateway_process import PATIENT
from tests.ports import HOST, ReservedPort

pytestmark = pytest.mark.process


def wait_until_ready(url: str) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            if httpx.get(f"{url}/ready", timeout=PATIENT).status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            assert time.monotonic() < deadline
        time.sleep(0.05)


def gateway_of(node: int) -> int:
    """The process id of the only child."""
    (child,) = Path(f"/proc/{node}/task/{node}/children").read_text().split()
    return int(child)


def test_the_gateway_comes_again_and_goes_with_its_node(tmp_path: Path) -> None:
    port = ReservedPort()
    url = f"http://{HOST}:{port}"
    broker = BrokerProcess(tmp_path, "--http", str(port))
    with broker:
        wait_until_ready(url)
        first = gateway_of(broker.pid)
        os.kill(first, signal.SIGKILL)
        wait_until_ready(url)
        assert gateway_of(broker.pid) != first
        answer = httpx.post(
            f"{url}/publish", json={"topic": "t", "message": "hello"}, timeout=PATIENT
        )
        assert answer.json()["offset"] == 0
        assert broker.stop() == 0
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/health", timeout=PATIENT)
