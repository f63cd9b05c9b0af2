"""A gateway's metrics, and the port that serves them."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.gateway.gateway_process import PATIENT, GatewayProcess
from tests.ports import HOST, ReservedPort

DOCUMENT = Path(__file__).parents[2] / "docs" / "http.md"

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(http: httpx.Client) -> Samples:
    answer = http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def value(found: Samples, name: str, **labels: str) -> float:
    return found.get((f"ottla_gateway_{name}", frozenset(labels.items())), 0.0)


@pytest.fixture(scope="module")
def own(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    directory = tmp_path_factory.mktemp("metrics")
    with (
        GatewayProcess(directory, bootstrap) as gateway,
        httpx.Client(base_url=gateway.url, timeout=PATIENT) as client,
    ):
        yield client


def test_requests_and_records_are_counted(own: httpx.Client, topic: str) -> None:
    assert own.post("/publish", json={"topic": topic, "message": "a"}).status_code == 200
    records = [{"value": "b"}, {"value": {"c": 1}}]
    assert own.post(f"/topics/{topic}/records", json=records).status_code == 200
    received = own.post("/consume", json={"topic": topic, "wait": 60}).json()
    assert own.post("/ack", json={"delivery": received["delivery"]}).status_code == 204
    assert own.post("/publish", json={"message": "nowhere"}).status_code == 400
    found = samples(own)
    publish = {"route": "/publish", "method": "POST"}
    assert value(found, "requests_total", **publish, status="200") == 1
    assert value(found, "requests_total", **publish, status="400") == 1
    assert value(found, "request_duration_seconds_count", **publish) == 2
    assert value(found, "request_duration_seconds_bucket", **publish, le="+Inf") == 2
    assert value(found, "requests_in_flight", **publish) == 0
    metrics = {"route": "/metrics", "method": "GET"}
    assert value(found, "requests_in_flight", **metrics) == 1
    assert value(found, "published_records_total") == 3
    assert value(found, "received_records_total") >= 1
    assert value(found, "settled_records_total", verdict="accept") == 1
    assert value(found, "queued_records") == 0
    assert ("process_resident_memory_bytes", frozenset()) in found


def test_labels_are_bounded(own: httpx.Client) -> None:
    for number in range(20):
        own.get(f"/no/such/path/{number}")
        own.get(f"/topics/no-such-topic-{number}")
    routes = {dict(labels).get("route") for _, labels in samples(own)}
    assert "/topics/{topic}" in routes
    assert not any("no-such" in (route or "") for route in routes)


def test_open_streams_are_counted(own: httpx.Client, topic: str) -> None:
    with own.stream("GET", f"/topics/{topic}/stream") as stream:
        events = stream.iter_raw()
        next(events)
        assert value(samples(own), "streams") == 1


def test_every_metric_is_documented(own: httpx.Client) -> None:
    text = own.get("/metrics").text
    served = set(re.findall(r"^# TYPE (ottla_gateway_\w+)", text, re.MULTILINE))
    documented = set(re.findall(r"`(ottla_gateway_\w+)`", DOCUMENT.read_text()))
    assert served == documented


def test_operators_can_have_a_port_of_their_own(bootstrap: str, tmp_path: Path) -> None:
    port = ReservedPort()
    with GatewayProcess(tmp_path, bootstrap, "--admin-port", str(port)) as gateway:
        admin = f"http://{HOST}:{port}"
        paths = ("/metrics", "/topics", "/groups", "/cluster")
        for path in paths:
            assert httpx.get(f"{admin}{path}", timeout=PATIENT).status_code == 200
            assert httpx.get(f"{gateway.url}{path}", timeout=PATIENT).status_code in (404, 405)
        for url in (admin, gateway.url):
            assert httpx.get(f"{url}/health", timeout=PATIENT).status_code == 200
            assert httpx.get(f"{url}/ready", timeout=PATIENT).status_code == 200
        publish = {"topic": f"admin-{port}", "message": "x"}
        assert httpx.post(f"{gateway.url}/publish", json=publish, timeout=PATIENT).is_success
        assert httpx.post(f"{admin}/publish", json=publish, timeout=PATIENT).status_code == 404
        assert gateway.stop() == 0


def test_the_log_is_that_of_a_broker(bootstrap: str, tmp_path: Path) -> None:
    with GatewayProcess(tmp_path, bootstrap, "--log-format", "json") as gateway:
        first = gateway.log_text().splitlines()[0]
    assert re.fullmatch(r'{"time": ".+Z", "level": "info", "component": "gateway", .+}', first)
