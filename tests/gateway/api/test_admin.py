"""Administration over HTTP, with a real broker."""

import time
from typing import Any

import httpx
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.gateway.conftest import make_topic

PATIENCE_S = 120.0


def produce(bootstrap: str, topic: str, count: int, **options: Any) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(count):
        producer.produce(topic, value=f"{number}".encode(), **options)
    assert producer.flush(PATIENCE_S) == 0


def commit(bootstrap: str, group: str, topic: str, partition: int, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    topic_partition = TopicPartition(topic, partition, offset)
    consumer.commit(offsets=[topic_partition], asynchronous=False)
    consumer.close()


def test_a_topic_is_made_described_and_deleted(http: httpx.Client, topic: str) -> None:
    name = f"{topic}-made"
    body = {"name": name, "partitions": 3, "configs": {"retention.ms": 60_000}}
    created = http.post("/topics", json=body)
    assert (created.status_code, created.headers["location"]) == (201, f"/topics/{name}")

    again = http.post("/topics", json=body)
    assert (again.status_code, again.json()["error"]) == (409, "TOPIC_ALREADY_EXISTS")

    described = http.get(f"/topics/{name}").json()
    assert [each["id"] for each in described["partitions"]] == [0, 1, 2]
    assert [each["end_offset"] for each in described["partitions"]] == [0, 0, 0]
    assert name in {each["name"] for each in http.get("/topics").json()["topics"]}

    assert http.delete(f"/topics/{name}").status_code == 204
    gone = http.get(f"/topics/{name}")
    assert (gone.status_code, gone.json()["error"]) == (404, "UNKNOWN_TOPIC_OR_PARTITION")
    assert http.delete(f"/topics/{name}").status_code == 404


def test_configs_are_shown_changed_and_restored(http: httpx.Client, topic: str) -> None:
    def retention() -> dict[str, Any]:
        configs = http.get(f"/topics/{topic}/configs").json()["configs"]
        return next(each for each in configs if each["name"] == "retention.ms")

    default = retention()
    assert default["default"]
    assert http.patch(f"/topics/{topic}/configs", json={"retention.ms": 5000}).status_code == 204
    assert (retention()["value"], retention()["source"]) == ("5000", "DYNAMIC_TOPIC_CONFIG")
    assert http.patch(f"/topics/{topic}/configs", json={"retention.ms": None}).status_code == 204
    assert retention() == default
    wrong = http.patch(f"/topics/{topic}/configs", json={"retention.ms": "soon"})
    assert (wrong.status_code, wrong.json()["error"]) == (400, "INVALID_CONFIG")
    assert http.patch(f"/topics/{topic}/configs", json={}).status_code == 400


def test_group_configs_are_of_the_group(http: httpx.Client) -> None:
    path = "/groups/admin-configs/configs"
    assert http.patch(path, json={"share.auto.offset.reset": "earliest"}).status_code == 204
    configs = {each["name"]: each["value"] for each in http.get(path).json()["configs"]}
    assert configs["share.auto.offset.reset"] == "earliest"


def test_partitions_are_added_and_records_deleted(
    http: httpx.Client, topic: str, bootstrap: str
) -> None:
    produce(bootstrap, topic, 5, partition=0)
    produce(bootstrap, topic, 3, partition=1)
    assert http.post(f"/topics/{topic}/partitions", json={"count": 4}).json()["partitions"] == 4
    assert len(http.get(f"/topics/{topic}").json()["partitions"]) == 4

    path = f"/topics/{topic}/records:delete"
    some = http.post(path, json={"before": {"0": 2}})
    assert some.json() == {"start_offsets": {"0": 2}}
    everything = http.post(path)
    assert everything.json() == {"start_offsets": {"0": 5, "1": 3, "2": 0, "3": 0}}
    beyond = http.post(path, json={"before": {"0": 99}})
    assert (beyond.status_code, beyond.json()["error"]) == (416, "OFFSET_OUT_OF_RANGE")


def test_the_lag_of_a_group_is_told_in_records_and_seconds(
    http: httpx.Client, topic: str, bootstrap: str
) -> None:
    an_hour_ago = int(time.time() * 1000) - 3_600_000
    produce(bootstrap, topic, 4, partition=0, timestamp=an_hour_ago)
    produce(bootstrap, topic, 1, partition=1)
    group = f"{topic}-group"
    commit(bootstrap, group, topic, 0, 1)
    commit(bootstrap, group, topic, 1, 1)

    listed = http.get("/groups").json()["groups"]
    assert group in {each["id"] for each in listed}
    found = http.get(f"/groups/{group}").json()
    assert found["lag"] == 3
    assert found["lag_seconds"] >= 3_600
    by_partition = {each["partition"]: each for each in found["partitions"]}
    assert (by_partition[1]["lag"], by_partition[1]["lag_seconds"]) == (0, 0)
    assert (by_partition[0]["offset"], by_partition[0]["end_offset"]) == (1, 4)

    assert http.delete(f"/groups/{group}").status_code == 204
    gone = http.get(f"/groups/{group}")
    assert (gone.status_code, gone.json()["error"]) == (404, "GROUP_ID_NOT_FOUND")


def test_an_open_transaction_is_shown_and_aborted(
    http: httpx.Client, topic: str, bootstrap: str
) -> None:
    name = f"{topic}-transaction"
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, value=b"1", partition=0)
    producer.flush(PATIENCE_S)

    listed = http.get("/transactions").json()["transactions"]
    assert ("Ongoing", name) in {(each["state"], each["transactional_id"]) for each in listed}
    found = http.get(f"/transactions/{name}").json()
    assert found["partitions"] == [{"topic": topic, "partition": 0}]
    assert http.post(f"/transactions/{name}:abort").status_code == 204
    assert http.get(f"/transactions/{name}").json()["state"] != "Ongoing"
    assert http.post(f"/transactions/{name}:abort").status_code == 400
    assert http.get("/transactions/nothing").status_code == 404


def letter_headers(topic: str, offset: int) -> list[tuple[str, bytes]]:
    values = {"topic": topic, "partition": 1, "offset": offset, "group": "g", "delivery.count": 5}
    return [(f"__dlq.errors.{name}", str(value).encode()) for name, value in values.items()]


def test_dead_letters_are_looked_at_and_redriven(
    http: httpx.Client, topic: str, bootstrap: str
) -> None:
    dead = f"dlq.{topic}"
    assert http.post("/topics", json={"name": dead, "partitions": 1}).status_code == 201
    producer = Producer({"bootstrap.servers": bootstrap})
    for offset in (7, 8, 9):
        headers: list[tuple[str, str | bytes | None]] = [
            ("kind", b"order"),
            *letter_headers(topic, offset),
        ]
        producer.produce(dead, value=b"letter %d" % offset, key=b"k", headers=headers)
    assert producer.flush(PATIENCE_S) == 0

    assert {"topic": dead, "letters": 3} in http.get("/dead-letters").json()["topics"]
    letters = http.get(f"/dead-letters/{dead}").json()["letters"]
    assert [each["origin"]["offset"] for each in letters] == [7, 8, 9]
    assert len(http.get(f"/dead-letters/{dead}?max=2").json()["letters"]) == 2

    redriven = http.post(f"/dead-letters/{dead}:redrive", json={"partition": 0, "offset": 1})
    assert redriven.json()["letter"]["value"] == "letter 8"
    letters = http.get(f"/dead-letters/{dead}").json()["letters"]
    assert [each["redriven"] is not None for each in letters] == [False, True, False]

    assert http.post(f"/dead-letters/{dead}:redrive").json() == {"redriven": 2}
    assert http.get(f"/dead-letters/{dead}").json()["letters"] == []
    sent_again = http.get(f"/dead-letters/{topic}").json()["letters"]
    assert [each["value"] for each in sent_again] == ["letter 8", "letter 7", "letter 9"]
    assert {each["partition"] for each in sent_again} == {1}
    assert all(each["origin"] is None for each in sent_again)
    assert all(each["headers"] == [{"name": "kind", "value": "order"}] for each in sent_again)


def test_the_cluster_names_its_brokers(http: httpx.Client) -> None:
    cluster = http.get("/cluster").json()
    assert cluster["brokers"]
    broker = cluster["brokers"][0]["id"]
    assert http.get(f"/brokers/{broker}/configs").json()["configs"]
    assert http.get("/brokers/one/configs").status_code == 400


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/topics", "{"),
        ("POST", "/topics", "[]"),
        ("POST", "/topics", "{}"),
        ("POST", "/topics", '{"name": 1}'),
        ("POST", "/topics", '{"name": "x", "partitions": "1"}'),
        ("POST", "/topics", '{"name": "x", "nonsense": 1}'),
        ("POST", "/topics", '{"name": "no good"}'),
        ("POST", "/topics/{topic}/partitions", '{"count": 1}'),
        ("POST", "/topics/{topic}/records:delete", '{"before": {"a": 1}}'),
        ("GET", "/dead-letters/{topic}?max=x", ""),
        ("POST", "/dead-letters/{topic}:redrive", '{"partition": 0, "offset": 99}'),
    ],
)
def test_bad_requests_are_refused(
    http: httpx.Client, topic: str, method: str, path: str, body: str
) -> None:
    answer = http.request(method, path.replace("{topic}", topic), content=body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["detail"]


def test_topics_of_the_gateways_are_out_of_reach(http: httpx.Client, bootstrap: str) -> None:
    make_topic(bootstrap)
    for method, path in (
        ("DELETE", "/topics/__gateway"),
        ("POST", "/topics/__gateway/records:delete"),
        ("GET", "/dead-letters/__gateway"),
        ("PATCH", "/topics/__gateway_sqs/configs"),
    ):
        assert http.request(method, path).status_code == 403
