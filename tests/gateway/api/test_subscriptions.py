"""Webhooks from a real gateway to a server of the test."""

import base64
import hashlib
import hmac
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from tests.gateway.conftest import make_topic
from tests.gateway.gateway_process import PATIENT, GatewayProcess
from tests.gateway.receiver import Call, Receiver

from ottla.gateway.core.subscriptions import TOPIC

pytestmark = pytest.mark.clients

PATIENCE_S = 240
ALLOWED = ("--webhook-allow", "127.0.0.0/8")


@pytest.fixture(scope="module")
def allowing(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("webhooks"), bootstrap, *ALLOWED) as process:
        yield process
        assert "Traceback" not in process.log_text(), process.log_text()


@pytest.fixture
def api(allowing: GatewayProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=allowing.url, timeout=PATIENT) as client:
        yield client


def produce(bootstrap: str, topic: str, *values: str, key: str = "k") -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce(topic, value, key=key)
    assert producer.flush(PATIENCE_S) == 0


def subscribe(api: httpx.Client, **fields: Any) -> Any:
    response = api.post("/subscriptions", json=fields)
    assert response.status_code == httpx.codes.CREATED, response.text
    assert response.headers["location"] == f"/subscriptions/{response.json()['id']}"
    return response.json()


def signature(secret: str, call: Call) -> str:
    """Written independently from the specification."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    content = f"{call.headers['webhook-id']}.{call.headers['webhook-timestamp']}.".encode()
    digest = hmac.new(key, content + call.body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def test_records_are_delivered_and_signed(api: httpx.Client, bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, "before")
    with Receiver() as receiver:
        made = subscribe(api, url=receiver.url, topic=topic)
        produce(bootstrap, topic, "a", "b")
        calls = receiver.wait_for(lambda calls: len(calls) >= 2)
        assert sorted(call.json["value"] for call in calls) == ["a", "b"]
        for call in calls:
            assert call.json["topic"] == topic
            assert call.headers["content-type"] == "application/json"
            assert call.headers["webhook-signature"] == signature(made["secret"], call)
        assert len({call.headers["webhook-id"] for call in calls}) == 2
        assert api.delete(f"/subscriptions/{made['id']}").status_code == httpx.codes.NO_CONTENT


def test_what_fails_is_delivered_again_with_the_same_id(
    api: httpx.Client, bootstrap: str, topic: str
) -> None:
    with Receiver(lambda call: 500 if call.headers["ottla-delivery-count"] == "1" else 200) as to:
        made = subscribe(api, url=to.url, topic=topic)
        produce(bootstrap, topic, "a")
        first, second = to.wait_for(lambda calls: len(calls) >= 2)
        assert first.headers["webhook-id"] == second.headers["webhook-id"]
        assert first.body == second.body
        assert second.headers["webhook-signature"] == signature(made["secret"], second)
        api.delete(f"/subscriptions/{made['id']}")


def test_a_filter_chooses(api: httpx.Client, bootstrap: str, topic: str) -> None:
    with Receiver() as receiver:
        made = subscribe(
            api, url=receiver.url, topic=topic, start="earliest", filter={"keys": ["x"]}
        )
        produce(bootstrap, topic, "no", key="y")
        produce(bootstrap, topic, "yes", key="x")
        calls = receiver.wait_for(lambda calls: len(calls) >= 1)
        assert [call.json["value"] for call in calls] == ["yes"]
        api.delete(f"/subscriptions/{made['id']}")


def test_gone_disables_and_enabling_goes_on(api: httpx.Client, bootstrap: str, topic: str) -> None:
    with Receiver(lambda _: 410) as receiver:
        made = subscribe(api, url=receiver.url, topic=topic)
        produce(bootstrap, topic, "a")
        receiver.wait_for(lambda calls: len(calls) >= 1)
        shown: Any = {}
        while shown.get("state") != "disabled":
            shown = api.get(f"/subscriptions/{made['id']}").json()
        assert "410" in shown["reason"]
        receiver.answer = lambda _: 200
        enabled = api.post(f"/subscriptions/{made['id']}:enable").json()
        assert (enabled["state"], enabled["reason"]) == ("active", "")
        calls = receiver.wait_for(lambda calls: len(calls) >= 2)
        assert calls[1].json["value"] == "a"
        api.delete(f"/subscriptions/{made['id']}")


def test_another_gateway_goes_on_when_the_owner_stops(
    api: httpx.Client, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    with Receiver() as receiver:
        with GatewayProcess(tmp_path, bootstrap, *ALLOWED) as other:
            with httpx.Client(base_url=other.url, timeout=PATIENT) as client:
                made = subscribe(client, url=receiver.url, topic=topic)
            produce(bootstrap, topic, "a")
            receiver.wait_for(lambda calls: len(calls) >= 1)
        produce(bootstrap, topic, "b")
        calls = receiver.wait_for(lambda calls: len(calls) >= 2)
        assert [call.json["value"] for call in calls] == ["a", "b"]
        listed = api.get("/subscriptions").json()["subscriptions"]
        assert made["id"] in [each["id"] for each in listed]
        assert all("secret" not in each for each in listed)
        api.delete(f"/subscriptions/{made['id']}")
        assert api.get(f"/subscriptions/{made['id']}").status_code == httpx.codes.NOT_FOUND


def test_a_gateway_that_may_not_call_leaves_deliveries_to_others(
    api: httpx.Client, http: httpx.Client, gateway: GatewayProcess, bootstrap: str
) -> None:
    """Each would have half of the subscriptions if they were in one group."""
    with Receiver(lambda call: 500 if call.headers["ottla-delivery-count"] == "1" else 200) as to:
        topics = [make_topic(bootstrap) for _ in range(8)]
        made = [subscribe(api, url=to.url, topic=topic, max_deliveries=2) for topic in topics]
        while not all(f"{each['id']} is not served here" in gateway.log_text() for each in made):
            assert http.get("/subscriptions").status_code == httpx.codes.OK
        for topic in topics:
            produce(bootstrap, topic, "a")
        calls = to.wait_for(lambda calls: len(calls) >= 2 * len(topics))
        counts = Counter((c.json["topic"], c.headers["ottla-delivery-count"]) for c in calls)
        assert counts == {(topic, count): 1 for topic in topics for count in ("1", "2")}
        for each in made:
            api.delete(f"/subscriptions/{each['id']}")


def test_private_addresses_are_refused(http: httpx.Client, topic: str) -> None:
    for host in ("127.0.0.1:9", "localhost", "[::1]", "10.0.0.1", "169.254.169.254"):
        response = http.post("/subscriptions", json={"url": f"http://{host}/", "topic": topic})
        assert response.status_code == httpx.codes.BAD_REQUEST, response.text
        assert "--webhook-allow" in response.json()["detail"]


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, 400),
        ({"url": "ftp://127.0.0.1/"}, 400),
        ({"colour": "red"}, 400),
        ({"topic": "nothing"}, 404),
    ],
)
def test_what_makes_no_sense_is_refused(
    api: httpx.Client, topic: str, fields: dict[str, Any], status: int
) -> None:
    asked = {"url": "http://127.0.0.1:9/", "topic": topic} | fields if fields else {}
    response = api.post("/subscriptions", json=asked)
    assert response.status_code == status, response.text


def test_what_never_succeeds_becomes_a_dead_letter(
    api: httpx.Client, bootstrap: str, topic: str
) -> None:
    with Receiver(lambda _: 500) as receiver:
        made = subscribe(api, url=receiver.url, topic=topic, max_deliveries=2)
        produce(bootstrap, topic, "a")
        counts = [
            call.headers["ottla-delivery-count"]
            for call in receiver.wait_for(lambda calls: len(calls) >= 2)
        ]
        assert counts == ["1", "2"]
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"letters-{topic}",
                "auto.offset.reset": "earliest",
                "topic.metadata.refresh.interval.ms": 200,
                "allow.auto.create.topics": False,
            }
        )
        consumer.subscribe([f"^dlq.{topic}"])
        letter = None
        while letter is None or letter.error():
            letter = consumer.poll(PATIENCE_S)
        consumer.close()
        assert letter.value() == b"a"
        api.delete(f"/subscriptions/{made['id']}")


def test_a_gateway_leaves_its_group_when_the_last_subscription_is_gone(
    api: httpx.Client, bootstrap: str, topic: str
) -> None:
    for subscription in api.get("/subscriptions").json()["subscriptions"]:
        api.delete(f"/subscriptions/{subscription['id']}")
    with Receiver() as receiver:
        for value in ("a", "b"):  # The second time it rejoins.
            made = subscribe(api, url=receiver.url, topic=topic)
            produce(bootstrap, topic, value)

            def has_it(calls: list[Call], value: str = value) -> bool:
                return bool(calls) and calls[-1].json["value"] == value

            receiver.wait_for(has_it)
            assert members_of_gateways(bootstrap)
            api.delete(f"/subscriptions/{made['id']}")
            deadline = time.monotonic() + PATIENCE_S
            while members_of_gateways(bootstrap):
                assert time.monotonic() < deadline


def members_of_gateways(bootstrap: str) -> list[str]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    groups = [each.group_id for each in admin.list_consumer_groups().result(PATIENCE_S).valid]
    gateways = [group for group in groups if group.startswith(TOPIC)]
    if not gateways:
        return []
    described = admin.describe_consumer_groups(gateways).values()
    return [member.member_id for each in described for member in each.result(PATIENCE_S).members]
