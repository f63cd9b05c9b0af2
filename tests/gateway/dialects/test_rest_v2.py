"""The Confluent REST Proxy's API v2, with the content types and errors that its clients expect."""

import base64
from typing import Any

import httpx
import pytest

JSON = "application/vnd.kafka.json.v2+json"
BINARY = "application/vnd.kafka.binary.v2+json"
V2 = "application/vnd.kafka.v2+json"


def produce(http: httpx.Client, path: str, records: list[Any], media: str = JSON) -> Any:
    answer = http.post(path, json={"records": records}, headers={"Content-Type": media})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == V2
    return answer.json()


def error_of(answer: httpx.Response) -> tuple[int, int]:
    assert answer.headers["content-type"] == V2
    assert answer.json()["message"]
    return answer.status_code, answer.json()["error_code"]


class Instance:
    def __init__(self, http: httpx.Client, group: str, **options: Any) -> None:
        created = http.post(f"/consumers/{group}", json=options, headers={"Content-Type": V2})
        assert created.status_code == 200, created.text
        self.http = http
        self.path = httpx.URL(created.json()["base_uri"]).path

    def post(self, name: str, body: Any) -> httpx.Response:
        return self.http.post(f"{self.path}/{name}", json=body, headers={"Content-Type": V2})

    def get(self, name: str, media: str = V2, body: Any = None) -> httpx.Response:
        url, headers = f"{self.path}/{name}", {"Accept": media}
        return self.http.request("GET", url, json=body, headers=headers)

    def read(self, count: int, media: str) -> list[Any]:
        found: list[Any] = []
        while len(found) < count:
            answer = self.get("records?timeout=5000", media)
            assert answer.status_code == 200, answer.text
            assert answer.headers["content-type"] == media
            found += answer.json()
        return found


def test_records_are_produced_and_consumed_as_json(http: httpx.Client, topic: str) -> None:
    records = [{"value": {"a": 1}, "key": "k", "partition": 0}, {"value": None, "partition": 0}]
    offsets = produce(http, f"/topics/{topic}", records)["offsets"]
    assert [(each["partition"], each["offset"]) for each in offsets] == [(0, 0), (0, 1)]
    produce(http, f"/topics/{topic}/partitions/1", [{"value": [1]}])

    options = {"name": "one", "format": "json", "auto.offset.reset": "earliest"}
    instance = Instance(http, f"{topic}-group", **options)
    assert instance.post("subscription", {"topics": [topic]}).status_code == 204
    assert instance.get("subscription").json() == {"topics": [topic]}
    found = sorted(instance.read(3, JSON), key=lambda each: (each["partition"], each["offset"]))
    assert [each["value"] for each in found] == [{"a": 1}, None, [1]]
    assert found[0]["key"] == "k"

    committed = {"offsets": [{"topic": topic, "partition": 0, "offset": 1}]}
    assert instance.post("offsets", committed).status_code == 200
    asked = {"partitions": [{"topic": topic, "partition": 0}]}
    offsets = instance.get("offsets", body=asked).json()["offsets"]
    assert [(each["partition"], each["offset"]) for each in offsets] == [(0, 2)]
    assert error_of(instance.get("records", BINARY)) == (406, 40601)
    assert http.delete(instance.path).status_code == 204
    assert error_of(http.delete(instance.path)) == (404, 40403)


def test_an_assigned_consumer_seeks_in_binary(http: httpx.Client, topic: str) -> None:
    values = [base64.b64encode(b"\xff%d" % number).decode() for number in range(3)]
    records = [{"value": value, "partition": 0} for value in values]
    produce(http, f"/topics/{topic}", records, BINARY)
    instance = Instance(http, f"{topic}-binary", **{"auto.offset.reset": "earliest"})
    topic_partition = {"topic": topic, "partition": 0}
    assert instance.post("assignments", {"partitions": [topic_partition]}).status_code == 204
    assert instance.get("assignments").json() == {"partitions": [topic_partition]}
    assert [each["value"] for each in instance.read(3, BINARY)] == values
    assert (
        instance.post("positions", {"offsets": [{**topic_partition, "offset": 2}]}).status_code
        == 204
    )
    assert [each["offset"] for each in instance.read(1, BINARY)] == [2]
    assert (
        instance.post("positions/beginning", {"partitions": [topic_partition]}).status_code == 204
    )
    assert instance.read(3, BINARY)[0]["offset"] == 0
    elsewhere = {"topic": topic, "partition": 1}
    assert error_of(instance.post("positions/end", {"partitions": [elsewhere]})) == (409, 40903)
    assert http.delete(instance.path).status_code == 204


@pytest.mark.parametrize(
    ("path", "media", "body", "status", "code"),
    [
        ("/topics/{topic}", "application/vnd.kafka.avro.v2+json", '{"records": []}', 415, 415),
        ("/topics/{topic}", JSON, "{", 400, 400),
        ("/topics/{topic}", JSON, '{"records": []}', 422, 422),
        ("/topics/{topic}", BINARY, '{"records": [{"value": "!"}]}', 422, 42206),
        ("/topics/{topic}/partitions/9", JSON, '{"records": [{"value": 1}]}', 404, 40402),
        ("/consumers/g", V2, '{"format": "odd"}', 422, 42204),
        ("/consumers/g", V2, '{"auto.offset.reset": "odd"}', 422, 42204),
        ("/consumers/g/instances/none/subscription", V2, '{"topics": ["a"]}', 404, 40403),
    ],
)
def test_errors_have_the_numbers_of_the_proxy(
    http: httpx.Client, topic: str, path: str, media: str, body: str, status: int, code: int
) -> None:
    answer = http.post(
        path.replace("{topic}", topic), content=body, headers={"Content-Type": media}
    )
    assert error_of(answer) == (status, code)


def test_a_name_is_taken_once(http: httpx.Client, topic: str) -> None:
    instance = Instance(http, topic, name="twice")
    again = http.post(f"/consumers/{topic}", json={"name": "twice"}, headers={"Content-Type": V2})
    assert error_of(again) == (409, 40902)
    both = {"topics": [topic], "topic_pattern": "a.*"}
    assert error_of(instance.post("subscription", both)) == (409, 40903)
    assert http.delete(instance.path).status_code == 204


PROXY = {"Accept": "application/vnd.kafka.v2+json, application/json"}


def test_metadata_has_the_proxys_form_for_its_clients(http: httpx.Client, topic: str) -> None:
    answer = http.get("/topics", headers=PROXY)
    assert answer.headers["content-type"] == "application/vnd.kafka.v2+json"
    assert topic in answer.json()
    assert topic in {each["name"] for each in http.get("/topics").json()["topics"]}
    found = http.get(f"/topics/{topic}", headers=PROXY).json()
    assert found["name"] == topic
    assert found["configs"]["cleanup.policy"] == "delete"
    brokers = http.get("/brokers", headers=PROXY).json()["brokers"]
    leader = found["partitions"][1]["leader"]
    assert leader in brokers
    assert found["partitions"][1]["replicas"] == [
        {"broker": leader, "leader": True, "in_sync": True}
    ]
    assert http.get(f"/topics/{topic}/partitions", headers=PROXY).json() == found["partitions"]
    partition = http.get(f"/topics/{topic}/partitions/1", headers=PROXY).json()
    assert partition == found["partitions"][1]


def test_offsets_and_what_is_missing(http: httpx.Client, topic: str) -> None:
    http.post(f"/topics/{topic}/records?partition=1", content=b"v")
    offsets = http.get(f"/topics/{topic}/partitions/1/offsets", headers=PROXY).json()
    assert offsets == {"beginning_offset": 0, "end_offset": 1}
    for path, code in (
        ("/topics/no-such-topic", 40401),
        ("/topics/no-such-topic/partitions", 40401),
        (f"/topics/{topic}/partitions/7", 40402),
        (f"/topics/{topic}/partitions/7/offsets", 40402),
    ):
        answer = http.get(path, headers=PROXY)
        assert (answer.status_code, answer.json()["error_code"]) == (404, code)
