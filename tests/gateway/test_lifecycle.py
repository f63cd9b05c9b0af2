"""Acknowledged records survive, however the gateway ends."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from tests.gateway.gateway_process import PATIENT, GatewayProcess

pytestmark = pytest.mark.process


@pytest.fixture
def doomed(bootstrap: str, tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path, bootstrap) as gateway:
        yield gateway


def publish_until_it_ends(gateway: GatewayProcess, topic: str, name: int) -> list[str]:
    """The acknowledged records."""
    acknowledged: list[str] = []
    with httpx.Client(base_url=gateway.url, timeout=PATIENT) as client:
        for number in range(100_000):
            value = f"{name}-{number}"
            try:
                answer = client.post(f"/topics/{topic}/records", content=value.encode())
            except httpx.TransportError:
                return acknowledged
            if answer.status_code == httpx.codes.OK:
                acknowledged.append(value)
    return acknowledged


def written(http: httpx.Client, topic: str) -> list[str]:
    values = []
    for partition in (0, 1):
        answer = http.get(f"/topics/{topic}/partitions/{partition}/records?max=10000").json()
        values += [record["value"] for record in answer["records"]]
    return values


@pytest.mark.parametrize("is_killed", [False, True])
def test_the_acknowledged_records_are_there(
    http: httpx.Client, doomed: GatewayProcess, topic: str, is_killed: bool
) -> None:
    with ThreadPoolExecutor(4) as pool:
        sending = [pool.submit(publish_until_it_ends, doomed, topic, name) for name in range(4)]
        deadline = time.monotonic() + 240
        while len(written(http, topic)) < 50:
            assert time.monotonic() < deadline
        if is_killed:
            doomed.kill()
        else:
            assert doomed.stop() == 0
        acknowledged = [value for each in sending for value in each.result()]
    assert len(acknowledged) >= 40
    there = written(http, topic)
    assert set(acknowledged) <= set(there)
    assert len(there) == len(set(there))


def test_a_request_that_waits_is_answered_at_the_end(doomed: GatewayProcess, topic: str) -> None:
    with ThreadPoolExecutor(1) as pool:
        path = f"{doomed.url}/topics/{topic}/partitions/0/records?offset=0&wait=60000"
        waiting = pool.submit(httpx.get, path, timeout=PATIENT)
        time.sleep(1)  # By now it most likely waits; if not, the answer is the same.
        assert doomed.stop() == 0
        try:
            assert waiting.result().json()["records"] == []
        except httpx.ConnectError:
            pass  # It arrived too late to be served.
