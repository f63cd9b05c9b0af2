"""`ottla serve --http`: a gateway that starts, restarts and stops with its node."""

import os
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from tests.broker_process import START_TIMEOUT_S, BrokerProcess
from tests.gateway.gateway_process import PATIENT, GatewayProcess
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


def take_from_gateway(broker: BrokerProcess, port: ReservedPort) -> socket.socket:
    """Kills the gateway and takes over its port."""
    while True:
        with suppress(ValueError, ProcessLookupError):  # None is running now.
            os.kill(gateway_of(broker.pid), signal.SIGKILL)
        with suppress(OSError):
            return socket.create_server((HOST, port.number))


def wait_until_logged(broker: BrokerProcess, text: str) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while text not in broker.log_text():
        assert time.monotonic() < deadline, broker.log_text()
        time.sleep(0.05)


def test_a_gateway_whose_port_was_taken_says_so_once_and_comes_back(tmp_path: Path) -> None:
    port = ReservedPort()
    url = f"http://{HOST}:{port}"
    with BrokerProcess(tmp_path, "--http", str(port)) as broker:
        wait_until_ready(url)
        with take_from_gateway(broker, port):
            wait_until_logged(broker, "in use by another process; retrying until it can")
            assert "the gateway has ended by signal 9, 1 in a row" in broker.log_text()
        wait_until_ready(url)
        assert broker.log_text().count("retrying until it can") == 1


def families(url: str) -> dict[str, int]:
    """How often each metric is declared on a page."""
    page = httpx.get(f"{url}/metrics", timeout=PATIENT).text
    names = [line.split()[2] for line in page.splitlines() if line.startswith("# TYPE ")]
    return {name: names.count(name) for name in names}


@pytest.mark.parametrize("has_node", [True, False])
def test_the_http_port_has_the_metrics_of_the_node(tmp_path: Path, has_node: bool) -> None:
    port = ReservedPort()
    url = f"http://{HOST}:{port}"
    settings = () if has_node else ("--set", "metrics.port=-1")
    with BrokerProcess(tmp_path, "--http", str(port), *settings):
        wait_until_ready(url)
        found = families(url)
    assert set(found.values()) == {1}
    assert {"ottla_gateway_requests_total", "process_open_fds"} <= set(found)
    assert ("ottla_partitions" in found) == has_node


def test_without_the_node_the_gateway_tells_of_itself(bootstrap: str, tmp_path: Path) -> None:
    nowhere = f"http://{HOST}:{ReservedPort()}/metrics"
    with GatewayProcess(tmp_path, bootstrap, "--node-metrics", nowhere) as gateway:
        found = families(gateway.url)
    assert {"ottla_gateway_requests_total", "process_open_fds"} <= set(found)
