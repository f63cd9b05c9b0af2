"""The WebSocket of a real gateway."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest
from tests.gateway.conftest import make_topic
from tests.gateway.gateway_process import GatewayProcess
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

pytestmark = pytest.mark.clients

PATIENCE_S = 240


class Session:
    """One connection; messages that were not requested yet are kept by id."""

    def __init__(self, gateway: GatewayProcess, **options: Any) -> None:
        url = gateway.url.replace("http://", "ws://") + "/ws"
        self._context = connect(url, open_timeout=PATIENCE_S, **options)
        self._waiting: list[Any] = []
        self._number = 0

    def __enter__(self) -> Self:
        self._connection = self._context.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._context.__exit__(*error)

    def send(self, op: str, number: Any = None, **fields: Any) -> Any:
        self._number += 1
        number = self._number if number is None else number
        self._connection.send(json.dumps({"op": op, "id": number, **fields}))
        return number

    def send_text(self, text: str | bytes) -> None:
        self._connection.send(text)

    def receive(self, number: Any) -> Any:
        """The next message about it."""
        for message in self._waiting:
            if message["id"] == number:
                self._waiting.remove(message)
                return message
        while True:
            message = json.loads(self._connection.recv(PATIENCE_S))
            if message["id"] == number:
                return message
            self._waiting.append(message)

    def call(self, op: str, number: Any = None, **fields: Any) -> Any:
        return self.receive(self.send(op, number, **fields))

    def wait_until_closed(self) -> int:
        with contextlib.suppress(ConnectionClosed):
            while True:
                self._connection.recv(PATIENCE_S)
        code = self._connection.protocol.close_code
        assert isinstance(code, int)
        return code


@pytest.fixture
def session(gateway: GatewayProcess) -> Iterator[Session]:
    with Session(gateway) as session:
        yield session
    assert "Traceback" not in gateway.log_text(), gateway.log_text()[-8000:]


def test_publish_and_subscribe_on_one_connection(session: Session, topic: str) -> None:
    first = session.call("publish", topic=topic, key="k", value={"n": 1}, partition=1)
    assert (first["op"], first["partition"], first["offset"]) == ("published", 1, 0)
    subscribed = session.call("subscribe", "s", topic=topic, offset="earliest")
    assert subscribed == {"op": "subscribed", "id": "s", "offsets": {"0": 0, "1": 0}}
    session.call("publish", topic=topic, value="two", headers=[{"name": "a", "value": "b"}])
    records = [session.receive("s") for _ in range(2)]
    assert {message["op"] for message in records} == {"record"}
    values = {message["record"]["value"]: message["record"] for message in records}
    assert values.keys() == {'{"n":1}', "two"}
    assert values["two"]["headers"] == [{"name": "a", "value": "b"}]
    session.send("cancel", "s")
    assert session.receive("s") == {"op": "ended", "id": "s"}


def test_a_subscription_sends_no_more_than_its_credit(session: Session, topic: str) -> None:
    for n in range(5):
        session.call("publish", topic=topic, value=str(n), partition=0)
    session.call("subscribe", "s", topic=topic, offset="0:0", credit=2)
    assert [session.receive("s")["record"]["value"] for _ in range(2)] == ["0", "1"]
    # The answer to a later message proves that nothing more was sent before it.
    session.call("publish", topic=topic, value="5", partition=0)
    assert all(message["id"] != "s" for message in session._waiting)
    session.send("credit", "s", credit=3)
    assert [session.receive("s")["record"]["value"] for _ in range(3)] == ["2", "3", "4"]


def test_filters_and_beginnings(session: Session, topic: str) -> None:
    for key in ("a", "b", "a"):
        session.call("publish", topic=topic, key=key, value=key, partition=0)
    chosen = {"keys": ["a"], "partitions": [0]}
    session.call("subscribe", "s", topic=topic, offset=1, filter=chosen)
    assert session.receive("s")["record"]["offset"] == 2


def test_receive_and_settle(session: Session, topic: str) -> None:
    for n in range(3):
        session.call("publish", topic=topic, value=str(n), partition=0)
    assert session.call("receive", "q", topic=topic, group=topic, credit=2)["op"] == "receiving"
    first, second = session.receive("q"), session.receive("q")
    assert (first["op"], first["record"]["delivery_count"]) == ("delivery", 1)
    settled = session.call("ack", delivery=first["record"]["delivery"])
    assert [each["status"] for each in settled["results"]] == ["done"]
    again = session.call("ack", delivery=first["record"]["delivery"])
    assert [each["error"] for each in again["results"]] == ["expired"]
    extended = session.call("extend", deliveries=[second["record"]["delivery"]], lock=60)
    assert extended["results"][0]["locked_until"] > second["record"]["locked_until"]
    session.call("nack", delivery=second["record"]["delivery"], delay=0)
    session.send("credit", "q", credit=2)
    left = [session.receive("q")["record"] for _ in range(2)]
    assert sorted((each["value"], each["delivery_count"]) for each in left) == [("1", 2), ("2", 1)]
    rejected = session.call("reject", deliveries=[each["delivery"] for each in left])
    assert [each["status"] for each in rejected["results"]] == ["done", "done"]


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"op": "dance"}, 400),
        ({"op": "publish"}, 400),
        ({"op": "publish", "topic": "__gateway_x", "value": "x"}, 403),
        ({"op": "publish", "topic": "T", "value_base64": "*"}, 400),
        ({"op": "publish", "topic": "T", "value": "x", "partition": 9}, 404),
        ({"op": "subscribe", "topic": "nothing"}, 404),
        ({"op": "subscribe", "topic": "T", "offset": "soon"}, 400),
        ({"op": "subscribe", "topic": "T", "credit": -1}, 400),
        ({"op": "receive", "topic": "nothing", "group": "g"}, 404),
        ({"op": "ack"}, 400),
        ({"op": "extend", "delivery": "x"}, 400),
        ({"op": "cancel"}, 400),
    ],
)
def test_what_makes_no_sense_is_refused(
    session: Session, topic: str, fields: dict[str, Any], status: int
) -> None:
    if fields.get("topic") == "T":
        fields = fields | {"topic": topic}
    number = session.send(**fields)
    message = session.receive(number)
    assert message["op"] == "error"
    assert message["problem"]["status"] == status, message


@pytest.mark.parametrize("text", ["", "x", "[]", "{}", '{"op":"publish","id":null}', "[" * 100_000])
def test_what_is_no_message_is_answered_without_an_id(session: Session, text: str) -> None:
    session.send_text(text)
    assert session.receive(None)["problem"]["status"] == 400


def test_an_id_is_in_use_until_its_subscription_ends(session: Session, topic: str) -> None:
    session.call("subscribe", "s", topic=topic)
    assert session.call("subscribe", "s", topic=topic)["op"] == "error"
    assert session.call("cancel", "s")["op"] == "ended"
    assert session.call("subscribe", "s", topic=topic)["op"] == "subscribed"


def test_bytes_end_the_connection(session: Session) -> None:
    session.send_text(b"\x00")
    assert session.wait_until_closed() == 1007


def test_pages_of_other_sites_are_refused(gateway: GatewayProcess) -> None:
    with pytest.raises(InvalidStatus) as raised:
        Session(gateway, origin="https://elsewhere.example").__enter__()
    assert raised.value.response.status_code == 403
    with Session(gateway, origin=gateway.url):
        pass


def test_a_connection_is_closed_when_the_gateway_stops(bootstrap: str, tmp_path: Path) -> None:
    topic = make_topic(bootstrap)
    with GatewayProcess(tmp_path, bootstrap) as gateway, Session(gateway) as session:
        session.call("subscribe", "s", topic=topic)
        session.call("receive", "q", topic=topic, group="g")
        assert gateway.stop() == 0
        assert session.wait_until_closed() == 1001
        assert "Traceback" not in gateway.log_text(), gateway.log_text()
