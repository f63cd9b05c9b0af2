"""A page in a real browser: an EventSource and a WebSocket."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.gateway.browser import Browser
from tests.gateway.conftest import make_topic
from tests.gateway.gateway_process import GatewayProcess

pytestmark = pytest.mark.clients

PATIENCE_S = 240


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


def produce(bootstrap: str, topic: str, *values: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(PATIENCE_S) == 0


def test_an_event_source_goes_on_after_the_gateway_was_killed(
    browser: Browser, bootstrap: str, tmp_path: Path
) -> None:
    topic = make_topic(bootstrap)
    with GatewayProcess(tmp_path, bootstrap) as gateway:
        browser.open(f"{gateway.url}/health")
        browser.run_until_done(
            """
            window.values = [];
            const source = new EventSource(`/topics/${arguments[0]}/stream`);
            source.onmessage = event => window.values.push(JSON.parse(event.data).value);
            source.onopen = () => done();
            """,
            topic,
        )
        produce(bootstrap, topic, *(f"a{n}" for n in range(50)))
        wait_for_values(browser, 50)
        gateway.kill()
        produce(bootstrap, topic, *(f"b{n}" for n in range(50)))
        gateway.start()
        produce(bootstrap, topic, *(f"c{n}" for n in range(50)))
        seen = wait_for_values(browser, 150)
    assert sorted(seen) == sorted(f"{letter}{n}" for letter in "abc" for n in range(50))


def wait_for_values(browser: Browser, count: int) -> list[str]:
    found: list[str] = browser.run_until_done(
        """
        const look = () =>
            window.values.length >= arguments[0] ? done(window.values) : setTimeout(look, 20);
        look();
        """,
        count,
    )
    return found


def test_a_page_publishes_and_takes_over_a_websocket(
    browser: Browser, gateway: GatewayProcess, topic: str
) -> None:
    browser.open(f"{gateway.url}/health")
    messages = browser.run_until_done(
        """
        const topic = arguments[0], seen = [];
        const socket = new WebSocket(`ws://${location.host}/ws`);
        const send = message => socket.send(JSON.stringify(message));
        socket.onopen = () => {
            send({op: "subscribe", id: "s", topic, offset: "earliest"});
            send({op: "receive", id: "q", topic, group: topic});
            send({op: "publish", id: 1, topic, value: {hello: "wörld"}});
        };
        socket.onmessage = event => {
            const message = JSON.parse(event.data);
            seen.push(message);
            if (message.op === "delivery")
                send({op: "ack", id: 2, delivery: message.record.delivery});
            const ops = seen.map(each => each.op);
            if (ops.includes("error") || (ops.includes("settled") && ops.includes("record")))
                done(seen);
        };
        socket.onerror = () => done("no connection");
        """,
        topic,
    )
    by_op = {message["op"]: message for message in messages}
    assert "error" not in by_op, by_op
    assert by_op["record"]["record"]["value"] == '{"hello":"wörld"}'
    assert by_op["delivery"]["record"]["value"] == '{"hello":"wörld"}'
    assert by_op["settled"]["results"][0]["status"] == "done"
