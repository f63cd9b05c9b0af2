"""Queues over HTTP, with real gateways and a real broker."""

import asyncio
import base64
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import Producer
from tests.gateway.gateway_process import PATIENT, GatewayProcess

from ottla.client.async_wire.cluster import Cluster
from ottla.protocol.messages.delivery_acknowledge import API_KEY

WAIT_S = 60  # The longest that a request may wait.


def publish(bootstrap: str, topic: str, *values: bytes, **options: Any) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce(topic, value=value, **options)
    assert producer.flush(120) == 0


def receive(http: httpx.Client, queue: str, count: int, **options: Any) -> list[dict[str, Any]]:
    """Receives until there are that many."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        body = {"max": count - len(found), "wait": WAIT_S, **options}
        response = http.post(f"/queues/{queue}:receive", json=body)
        assert response.status_code == 200, response.text
        found += response.json()["deliveries"]
    return found


def is_empty(http: httpx.Client, queue: str) -> bool:
    response = http.post(f"/queues/{queue}:receive", json={"max": 100})
    assert response.status_code == 200, response.text
    return bool(response.json() == {"deliveries": []})


def test_receive_then_ack(http: httpx.Client, bootstrap: str, topic: str) -> None:
    publish(bootstrap, topic, b"hello", key=b"k", headers={"h": b"1"}, timestamp=1_700_000_000_000)
    (found,) = receive(http, f"{topic}/g", 1)
    assert found["topic"] == topic
    assert (found["offset"], found["timestamp"]) == (0, 1_700_000_000_000)
    assert (found["key"], found["value"], found["headers"]) == (
        "k",
        "hello",
        [{"name": "h", "value": "1"}],
    )
    assert found["delivery_count"] == 1
    assert found["locked_until"] > time.time() * 1000
    done = http.post(f"/queues/{topic}/g:ack", json={"delivery": found["delivery"]})
    assert (done.status_code, done.content) == (204, b"")
    assert is_empty(http, f"{topic}/g")


def test_bytes_that_are_no_text(http: httpx.Client, bootstrap: str, topic: str) -> None:
    publish(bootstrap, topic, b"\xff\x00")
    (found,) = receive(http, f"{topic}/g", 1)
    assert base64.b64decode(found["value_base64"]) == b"\xff\x00"
    assert found["key"] is None


def test_a_batch_has_a_result_for_each(http: httpx.Client, bootstrap: str, topic: str) -> None:
    publish(bootstrap, topic, *(b"%d" % number for number in range(10)))
    found = receive(http, f"{topic}/g", 10)
    handles = [each["delivery"] for each in found]
    body = {"deliveries": [*handles, "nonsense", handles[0]]}
    results = http.post(f"/queues/{topic}/g:ack", json=body).json()["results"]
    assert [each["status"] for each in results[1:10]] == ["done"] * 9
    assert results[10]["error"] == "invalid"
    # One of the two is refused: it is the same delivery.
    assert sorted([results[0]["status"], results[11]["status"]]) == ["done", "failed"]
    assert [each["delivery"] for each in results] == body["deliveries"]
    assert is_empty(http, f"{topic}/g")


def test_groups_do_not_know_each_other(http: httpx.Client, bootstrap: str, topic: str) -> None:
    publish(bootstrap, topic, b"a")
    (first,) = receive(http, f"{topic}/g1", 1)
    (second,) = receive(http, f"{topic}/g2", 1)
    wrong = http.post(f"/queues/{topic}/g2:ack", json={"delivery": first["delivery"]})
    assert wrong.status_code == 400
    assert wrong.headers["content-type"] == "application/problem+json"
    for group, found in (("g1", first), ("g2", second)):
        done = http.post(f"/queues/{topic}/{group}:ack", json={"delivery": found["delivery"]})
        assert done.status_code == 204


def test_nack_with_a_delay(http: httpx.Client, bootstrap: str, topic: str) -> None:
    publish(bootstrap, topic, b"a")
    (found,) = receive(http, f"{topic}/g", 1)
    body = {"delivery": found["delivery"], "delay": 1.5}
    released_s = time.monotonic()
    assert http.post(f"/queues/{topic}/g:nack", json=body).status_code == 204
    (again,) = receive(http, f"{topic}/g", 1)
    assert time.monotonic() - released_s >= 1.5
    assert again["delivery_count"] == 2
    stale = http.post(f"/queues/{topic}/g:ack", json={"delivery": found["delivery"]})
    assert (stale.status_code, stale.json()["error"]) == (409, "INVALID_RECORD_STATE")


def test_extend_and_reject(http: httpx.Client, bootstrap: str, topic: str) -> None:
    publish(bootstrap, topic, b"a")
    (found,) = receive(http, f"{topic}/g", 1, lock=600)
    body = {"delivery": found["delivery"], "lock": 43_200}
    extended = http.post(f"/queues/{topic}/g:extend", json=body)
    assert extended.json()["locked_until"] > (time.time() + 43_000) * 1000
    done = http.post(f"/queues/{topic}/g:reject", json={"deliveries": [found["delivery"]]})
    assert done.json()["results"] == [{"delivery": found["delivery"], "status": "done"}]
    assert is_empty(http, f"{topic}/g")


@pytest.mark.parametrize(
    ("call", "body"),
    [
        ("receive", {"max": 0}),
        ("receive", {"max": 1001}),
        ("receive", {"max": "1"}),
        ("receive", {"max": True}),
        ("receive", {"wait": -1}),
        ("receive", {"wait": 61}),
        ("receive", {"lock": 43_201}),
        ("receive", {"lock": "long"}),
        ("receive", []),
        ("ack", {}),
        ("ack", {"delivery": ""}),
        ("ack", {"delivery": "nonsense"}),
        ("ack", {"delivery": "a", "deliveries": ["b"]}),
        ("ack", {"deliveries": "a"}),
        ("ack", {"deliveries": [1]}),
        ("nack", {"delivery": "a", "delay": -1}),
        ("extend", {"delivery": "a"}),
    ],
)
def test_bad_requests(http: httpx.Client, topic: str, call: str, body: Any) -> None:
    response = http.post(f"/queues/{topic}/g:{call}", json=body)
    assert response.status_code == 400, response.text
    assert response.json()["detail"]


def test_what_is_not_json(http: httpx.Client, topic: str) -> None:
    for content in (b"{", b"\xff", b"[" * 100_000):
        response = http.post(f"/queues/{topic}/g:receive", content=content)
        assert response.status_code == 400, response.text


def test_topics_that_are_not_there_or_not_for_everyone(http: httpx.Client) -> None:
    missing = http.post("/queues/no-such-topic/g:receive", json={})
    assert (missing.status_code, missing.json()["error"]) == (404, "UNKNOWN_TOPIC_OR_PARTITION")
    assert http.post("/queues/__gateway/g:receive", json={}).status_code == 403


# The simple four.


def test_consume_ack_nack_clear(http: httpx.Client, bootstrap: str, topic: str) -> None:
    assert http.post("/consume", json={"topic": topic}).status_code == 204
    publish(bootstrap, topic, b"a", key=b"k")
    found = http.post("/consume", json={"topic": topic, "wait": WAIT_S}).json()
    assert set(found) == {"topic", "partition", "offset", "key", "message", "delivery"}
    assert (found["key"], found["message"]) == ("k", "a")
    again = {"delivery": found["delivery"], "delay": 0}
    assert http.post("/nack", json=again).status_code == 204
    found = http.post("/consume", json={"topic": topic, "wait": WAIT_S}).json()
    assert http.post("/ack", json={"delivery": found["delivery"]}).status_code == 204
    assert http.post("/ack", json={"delivery": found["delivery"]}).status_code == 409
    publish(bootstrap, topic, b"b", b"c")
    cleared = http.post("/clear", json={"topic": topic})
    assert cleared.status_code == 200
    assert sum(cleared.json()["partitions"].values()) == 3
    assert http.post("/consume", json={"topic": topic}).status_code == 204
    assert http.post("/clear", json={"topic": "no-such-topic"}).status_code == 404
    assert http.post("/consume", json={}).status_code == 400


# Consumers and gateways that go away.


def test_a_client_that_goes_while_it_waits_loses_nothing(
    http: httpx.Client, bootstrap: str, topic: str, gateway: GatewayProcess
) -> None:
    assert is_empty(http, f"{topic}/g")
    content = b'{"max": 10, "wait": 60}'
    request = (
        f"POST /queues/{topic}/g:receive HTTP/1.1\r\nHost: gateway\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    ).encode() + content
    for _ in range(8):  # More often than a record may be delivered.
        connection = socket.create_connection(("127.0.0.1", int(gateway.url.rpartition(":")[2])))
        connection.sendall(request)
        time.sleep(0.05)  # Some of them are waiting; it does not matter which.
        connection.close()
    publish(bootstrap, topic, *(b"%d" % number for number in range(20)))
    found = receive(http, f"{topic}/g", 20, lock=600)
    assert sorted(int(each["value"]) for each in found) == list(range(20))


@pytest.fixture
def two(bootstrap: str, tmp_path: Path) -> Iterator[tuple[GatewayProcess, GatewayProcess]]:
    with (
        GatewayProcess(tmp_path, bootstrap) as one,
        GatewayProcess(tmp_path, bootstrap) as other,
    ):
        yield one, other


@pytest.fixture
def held_locks(bootstrap: str) -> None:
    """For tests of brokers that hold locks for the bearer of a handle."""

    async def ask() -> bool:
        async with Cluster(bootstrap) as cluster:
            return (await cluster.any_broker()).supports(API_KEY) is not None

    if not asyncio.run(ask()):
        pytest.skip("these brokers hold no locks")


@pytest.mark.usefixtures("held_locks")
def test_a_delivery_outlives_the_gateway_that_made_it(
    two: tuple[GatewayProcess, GatewayProcess], bootstrap: str, topic: str
) -> None:
    publish(bootstrap, topic, *(b"%d" % number for number in range(30)))
    with (
        httpx.Client(base_url=two[0].url, timeout=PATIENT) as here,
        httpx.Client(base_url=two[1].url, timeout=PATIENT) as there,
    ):
        found = receive(here, f"{topic}/g", 30, lock=3_600)
        handles = [each["delivery"] for each in found]
        two[0].kill()
        assert is_empty(there, f"{topic}/g")
        acked = there.post(f"/queues/{topic}/g:ack", json={"deliveries": handles[:10]})
        assert [each["status"] for each in acked.json()["results"]] == ["done"] * 10
        body = {"deliveries": handles[10:20], "lock": 3_600}
        extended = there.post(f"/queues/{topic}/g:extend", json=body)
        assert [each["status"] for each in extended.json()["results"]] == ["done"] * 10
        body = {"deliveries": handles[20:], "delay": 0}
        released = there.post(f"/queues/{topic}/g:nack", json=body)
        assert [each["status"] for each in released.json()["results"]] == ["done"] * 10
        again = receive(there, f"{topic}/g", 10)
        assert sorted(each["value"] for each in again) == sorted(
            each["value"] for each in found[20:]
        )
        assert is_empty(there, f"{topic}/g")


def test_consumers_at_two_gateways_share_a_queue(
    two: tuple[GatewayProcess, GatewayProcess], bootstrap: str, topic: str
) -> None:
    names = [f"{number:03}" for number in range(200)]
    found: list[str] = []

    def consume(gateway: GatewayProcess) -> None:
        with httpx.Client(base_url=gateway.url, timeout=PATIENT) as http:
            while len(found) < len(names):
                body = {"max": 10, "wait": 1, "lock": 3_600}
                got = http.post(f"/queues/{topic}/g:receive", json=body).json()["deliveries"]
                handles = {"deliveries": [each["delivery"] for each in got]}
                settled = http.post(f"/queues/{topic}/g:ack", json=handles).json()["results"]
                assert all(each["status"] == "done" for each in settled)
                found.extend(each["value"] for each in got)

    with ThreadPoolExecutor(4) as pool:
        consumers = [pool.submit(consume, gateway) for gateway in (*two, *two)]
        publish(bootstrap, topic, *(name.encode() for name in names))
        for each in consumers:
            each.result()
    assert sorted(found) == names
