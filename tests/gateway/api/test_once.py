"""Idempotency-Key: a repeated request gets the first one's answer, through any gateway."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.gateway.gateway_process import PATIENT, GatewayProcess


@pytest.fixture
def other(bootstrap: str, tmp_path: Path) -> Iterator[httpx.Client]:
    """Another gateway of the same cluster."""
    with (
        GatewayProcess(tmp_path, bootstrap) as gateway,
        httpx.Client(base_url=gateway.url, timeout=PATIENT) as client,
    ):
        yield client


def values(http: httpx.Client, topic: str, count: int) -> list[str]:
    """Waits for that many records: a transaction is answered before its markers are written."""
    while True:
        found = []
        for partition in (0, 1):
            path = f"/topics/{topic}/partitions/{partition}/records"
            found += http.get(path, params={"max": 1_000}).json()["records"]
        if len(found) >= count:
            return sorted(record["value"] for record in found)


def test_a_repeated_request_is_answered_as_the_first(
    http: httpx.Client, other: httpx.Client, topic: str
) -> None:
    batch = [{"value": "a", "key": "k"}, {"value": "b", "partition": 1}, {"value": "c"}]

    def send(client: httpx.Client) -> Any:
        headers = {"Idempotency-Key": "one"}
        answer = client.post(f"/topics/{topic}/records", headers=headers, json=batch)
        assert answer.status_code == httpx.codes.OK, answer.text
        return answer.json()

    first = send(http)
    assert [send(client) for client in (http, other, other, http)] == [first] * 4
    assert values(http, topic, 3) == ["a", "b", "c"]


def test_another_request_with_the_same_key_is_refused(http: httpx.Client, topic: str) -> None:
    headers = {"Idempotency-Key": "two"}
    answer = http.post("/publish", headers=headers, json={"topic": topic, "message": "a"})
    assert answer.status_code == httpx.codes.OK, answer.text
    answer = http.post("/publish", headers=headers, json={"topic": topic, "message": "b"})
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert values(http, topic, 1) == ["a"]


def test_requests_at_once_through_two_gateways_are_written_once(
    http: httpx.Client, other: httpx.Client, topic: str
) -> None:
    def send(number: int) -> tuple[int, int]:
        key = str(number // 4)
        while True:
            client = (http, other)[number % 2]
            answer = client.post(
                f"/topics/{topic}/records", headers={"Idempotency-Key": key}, content=key.encode()
            )
            if answer.status_code == httpx.codes.OK:
                return answer.json()["partition"], answer.json()["offset"]
            assert answer.status_code in {409, 429, 503}, answer.text

    with ThreadPoolExecutor(8) as pool:
        written = list(pool.map(send, range(40)))
    assert [len(set(written[start : start + 4])) for start in range(0, 40, 4)] == [1] * 10
    assert values(http, topic, 10) == sorted(map(str, range(10)))


def test_what_cannot_be_done_once_is_refused(http: httpx.Client, topic: str) -> None:
    path = f"/topics/{topic}/records"
    for query, headers in (
        ("", {"Idempotency-Key": "x" * 256}),
        ("?acks=1", {"Idempotency-Key": "x"}),
        ("", {"Idempotency-Key": "x", "Content-Type": "application/x-ndjson"}),
    ):
        answer = http.post(path + query, headers=headers, content=b"v")
        assert answer.status_code == httpx.codes.BAD_REQUEST
    assert values(http, topic, 0) == []
