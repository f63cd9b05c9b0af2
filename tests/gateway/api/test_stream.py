"""Server-sent events from a real gateway."""

from pathlib import Path

import httpx
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.gateway.conftest import make_topic
from tests.gateway.events import EventSource
from tests.gateway.gateway_process import GatewayProcess

pytestmark = pytest.mark.clients

PATIENCE_S = 240


def produce(bootstrap: str, topic: str, partition: int, *values: str, key: str = "") -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce(topic, value, key=key or None, partition=partition)
    assert producer.flush(PATIENCE_S) == 0


@pytest.fixture
def url(gateway: GatewayProcess, topic: str) -> str:
    return f"{gateway.url}/topics/{topic}/stream"


def test_records_arrive_as_they_are_written(bootstrap: str, topic: str, url: str) -> None:
    produce(bootstrap, topic, 0, "before")
    with EventSource(url) as stream:
        assert stream.last_id == "0:1,1:0"
        produce(bootstrap, topic, 1, "a", key="k")
        (event,) = stream.take(1)
    assert event.type == "message"
    assert event.id == "0:1,1:1"
    assert event.json.pop("timestamp") > 0
    expected = {"topic": topic, "partition": 1, "offset": 0, "key": "k", "value": "a"}
    assert event.json.items() >= (expected | {"headers": []}).items()


def test_a_stream_is_taken_up_by_its_last_id_at_any_gateway(
    bootstrap: str, topic: str, url: str, tmp_path: Path
) -> None:
    produce(bootstrap, topic, 0, *(f"a{n}" for n in range(20)))
    produce(bootstrap, topic, 1, *(f"b{n}" for n in range(20)))
    seen: list[str] = []
    with EventSource(url, params={"offset": "earliest"}) as stream:
        seen += [event.json["value"] for event in stream.take(13)]
        last_id = stream.last_id
    produce(bootstrap, topic, 0, "a20")
    with GatewayProcess(tmp_path, bootstrap) as other:
        again = f"{other.url}/topics/{topic}/stream"
        with EventSource(again, headers={"Last-Event-ID": last_id}) as stream:
            seen += [event.json["value"] for event in stream.take(14)]
            last_id = stream.last_id
        with EventSource(again, params={"last_event_id": last_id}) as stream:
            seen += [event.json["value"] for event in stream.take(14)]
    assert [value for value in seen if value[0] == "a"] == [f"a{n}" for n in range(21)]
    assert [value for value in seen if value[0] == "b"] == [f"b{n}" for n in range(20)]


def test_filters_by_key_partition_and_header(bootstrap: str, topic: str, url: str) -> None:
    produce(bootstrap, topic, 0, "no", key="x")
    produce(bootstrap, topic, 0, "yes", key="y")
    produce(bootstrap, topic, 1, "elsewhere", key="y")
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, "typed", partition=1, headers={"ce_type": "order"})
    assert producer.flush(PATIENCE_S) == 0
    chosen = {"offset": "earliest", "key": ["y", "z"], "partition": "0"}
    with EventSource(url, params=chosen) as stream:
        assert [event.json["value"] for event in stream.take(1)] == ["yes"]
        assert stream.last_id == "0:2"
    with EventSource(url, params={"offset": "0:0,1:0", "header": "ce_type:order"}) as stream:
        assert [event.json["value"] for event in stream.take(1)] == ["typed"]


def test_where_a_stream_begins(bootstrap: str, topic: str, url: str) -> None:
    produce(bootstrap, topic, 0, "a", "b", "c")
    for chosen, first in (
        ({"offset": "1", "partition": "0"}, "b"),
        ({"offset": "0:2,1:0"}, "c"),
        ({"time": "0"}, "a"),
    ):
        with EventSource(url, params=chosen) as stream:
            assert stream.take(1)[0].json["value"] == first


def test_a_silent_stream_sends_comments(url: str) -> None:
    with EventSource(url, params={"heartbeat": "1"}) as stream:
        stream.wait_for_comment()
        stream.wait_for_comment()


def test_removed_records_are_a_gap(bootstrap: str, topic: str, url: str) -> None:
    produce(bootstrap, topic, 0, "a", "b", "c")
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for deleted in admin.delete_records([TopicPartition(topic, 0, 2)]).values():
        deleted.result(PATIENCE_S)
    with EventSource(url, params={"offset": "0:0"}) as stream:
        gap, record = stream.take(2)
    assert (gap.type, gap.id) == ("gap", "0:2,1:0")
    assert gap.json == {"partition": 0, "from": 0, "to": 2}
    assert record.json["value"] == "c"


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("offset=5", 400),
        ("offset=soon", 400),
        ("time=noon", 400),
        ("offset=1&time=1", 400),
        ("partition=x", 400),
        ("partition=77", 404),
        ("header=x", 400),
        ("heartbeat=0", 400),
        ("last_event_id=x", 400),
    ],
)
def test_what_makes_no_sense_is_refused(
    http: httpx.Client, topic: str, query: str, status: int
) -> None:
    response = http.get(f"/topics/{topic}/stream?{query}")
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"


def test_a_topic_that_is_not_there_or_not_to_be_read_is_refused(http: httpx.Client) -> None:
    assert http.get("/topics/nothing/stream").status_code == httpx.codes.NOT_FOUND
    assert http.get("/topics/__gateway/stream").status_code == httpx.codes.FORBIDDEN


def test_head_has_the_head_only(http: httpx.Client, topic: str) -> None:
    response = http.head(f"/topics/{topic}/stream")
    assert response.headers["content-type"].startswith("text/event-stream")


def test_streams_end_when_the_gateway_stops(bootstrap: str, tmp_path: Path) -> None:
    topic = make_topic(bootstrap)
    gateway = GatewayProcess(tmp_path, bootstrap)
    with gateway, EventSource(f"{gateway.url}/topics/{topic}/stream") as stream:
        assert gateway.stop() == 0
        assert list(stream) == []
        assert "Traceback" not in gateway.log_text()


def test_the_streams_of_a_group_divide_its_records(
    bootstrap: str, topic: str, url: str, http: httpx.Client
) -> None:
    produce(bootstrap, topic, 0, *(f"a{n}" for n in range(10)))
    produce(bootstrap, topic, 1, *(f"b{n}" for n in range(10)))
    seen = []
    for _ in range(2):
        with EventSource(url, params={"group": topic}, has_id=False) as stream:
            events = stream.take(10)
        seen += [event.json["value"] for event in events]
        handles = [event.json["delivery"] for event in events]
        response = http.post("/ack", json={"deliveries": handles})
        assert [each["status"] for each in response.json()["results"]] == ["done"] * 10
    assert sorted(seen) == sorted([f"a{n}" for n in range(10)] + [f"b{n}" for n in range(10)])


def test_deliveries_that_are_not_acknowledged_come_again(
    bootstrap: str, topic: str, url: str
) -> None:
    produce(bootstrap, topic, 0, "a")
    chosen = {"group": topic, "lock": "1"}
    with EventSource(url, params=chosen, has_id=False) as stream:
        first, second = stream.take(2)
    assert first.json["value"] == second.json["value"] == "a"
    assert (first.json["delivery_count"], second.json["delivery_count"]) == (1, 2)


def test_a_stream_can_acknowledge_what_it_sends(
    bootstrap: str, topic: str, url: str, http: httpx.Client
) -> None:
    produce(bootstrap, topic, 0, "a")
    chosen = {"group": topic, "lock": "1", "ack": "auto", "heartbeat": "1"}
    with EventSource(url, params=chosen, has_id=False) as stream:
        (event,) = stream.take(1)
        stream.wait_for_comment()  # Sent only after the acknowledgement.
        response = http.post("/ack", json={"delivery": event.json["delivery"]})
        assert response.status_code == httpx.codes.CONFLICT


@pytest.mark.parametrize("query", ["offset=1", "key=a", "ack=maybe", "lock=0", "lock=soon"])
def test_what_a_group_does_not_have_is_refused(http: httpx.Client, topic: str, query: str) -> None:
    response = http.get(f"/topics/{topic}/stream?group=g&{query}")
    assert response.status_code == httpx.codes.BAD_REQUEST
