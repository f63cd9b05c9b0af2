"""The Confluent REST Proxy's API v3: produce as a stream, topics, configs, groups."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest


@pytest.fixture
def base(http: httpx.Client) -> str:
    (cluster,) = http.get("/v3/clusters").json()["data"]
    return f"/v3/clusters/{cluster['cluster_id']}"


def test_records_are_produced_as_a_stream(http: httpx.Client, base: str, topic: str) -> None:
    records: list[Any] = [
        {"partition_id": 0, "value": {"type": "JSON", "data": {"a": 1}}},
        {"partition_id": 0, "key": {"type": "STRING", "data": "k"}},
        {"partition_id": 0, "value": {"type": "BINARY", "data": base64.b64encode(b"x").decode()}},
        {"value": {"type": "ODD", "data": 1}},
    ]

    def stream() -> Iterator[bytes]:
        content = "".join(map(json.dumps, records)).encode()
        yield content[:30]
        yield content[30:]

    answer = http.post(f"{base}/topics/{topic}/records", content=stream())
    reports = [json.loads(line) for line in answer.text.splitlines()]
    assert [report["error_code"] for report in reports] == [200, 200, 200, 42206]
    assert [report["offset"] for report in reports[:3]] == [0, 1, 2]
    assert reports[0]["topic_name"] == topic
    assert reports[0]["value"] == {"size": 7}


def test_topics_and_configs(http: httpx.Client, base: str, topic: str) -> None:
    name = f"{topic}-v3"
    body = {
        "topic_name": name,
        "partitions_count": 2,
        "configs": [{"name": "retention.ms", "value": "5"}],
    }
    created = http.post(f"{base}/topics", json=body)
    assert (created.status_code, created.json()["partitions_count"]) == (201, 2)
    assert created.json()["kind"] == "KafkaTopic"
    partitions = http.get(f"{base}/topics/{name}/partitions").json()["data"]
    assert [each["partition_id"] for each in partitions] == [0, 1]
    config = f"{base}/topics/{name}/configs/retention.ms"
    assert http.get(config).json()["value"] == "5"
    assert http.put(config, json={"value": "6"}).status_code == 204
    assert http.get(config).json()["value"] == "6"
    assert http.delete(config).status_code == 204
    assert http.get(config).json()["is_default"]
    alter = {"data": [{"name": "retention.ms", "value": "7"}]}
    assert http.post(f"{base}/topics/{name}/configs:alter", json=alter).status_code == 204
    assert name in {each["topic_name"] for each in http.get(f"{base}/topics").json()["data"]}
    assert http.delete(f"{base}/topics/{name}").status_code == 204
    gone = http.get(f"{base}/topics/{name}")
    assert (gone.status_code, gone.json()["error_code"]) == (404, 40401)
    elsewhere = http.get("/v3/clusters/other/topics")
    assert (elsewhere.status_code, elsewhere.json()["error_code"]) == (404, 404)


def test_groups(http: httpx.Client, base: str) -> None:
    listed = http.get(f"{base}/consumer-groups").json()
    assert listed["kind"] == "KafkaConsumerGroupList"
    gone = http.get(f"{base}/consumer-groups/nothing/lags")
    assert (gone.status_code, gone.json()["error_code"]) == (404, 40405)


def test_brokers_and_replicas(http: httpx.Client, base: str, topic: str) -> None:
    (broker, *_) = http.get(f"{base}/brokers").json()["data"]
    assert (broker["kind"], http.get(f"{base}/brokers/{broker['broker_id']}").json()) == (
        "KafkaBroker",
        broker,
    )
    configs = f"{base}/brokers/{broker['broker_id']}/configs"
    names = {each["name"] for each in http.get(configs).json()["data"]}
    assert "num.partitions" in names
    assert http.get(f"{configs}/num.partitions").json()["broker_id"] == broker["broker_id"]
    assert http.get(f"{configs}/no.such.config").status_code == 404
    assert http.get(f"{base}/brokers/9999").status_code == 404
    (partition, _) = http.get(f"{base}/topics/{topic}/partitions").json()["data"]
    leader = http.get(partition["leader"]["related"]).json()
    assert (leader["kind"], leader["is_leader"], leader["is_in_sync"]) == (
        "KafkaReplica",
        True,
        True,
    )
    assert http.get(partition["replicas"]["related"]).json()["data"] == [leader]
    assert http.get(f"{base}/topics/{topic}/partitions/7/replicas").json()["error_code"] == 40402


def test_what_a_group_links_to_is_there(http: httpx.Client, base: str, topic: str) -> None:
    consumer = f"/consumers/{topic}/instances/one"
    http.post(f"/consumers/{topic}", json={"name": "one", "auto.offset.reset": "earliest"})
    topic_partition = {"topic": topic, "partition": 0}
    http.post(f"{consumer}/assignments", json={"partitions": [topic_partition]})
    for _ in range(2):
        http.post(f"/topics/{topic}/records?partition=0", content=b"v")
    offsets = {"offsets": [{**topic_partition, "offset": 0}]}
    assert http.post(f"{consumer}/offsets", json=offsets).status_code == 200
    group = http.get(f"{base}/consumer-groups/{topic}").json()
    summary = http.get(group["lag_summary"]["related"]).json()
    assert (summary["max_lag"], summary["total_lag"]) == (1, 1)
    assert (summary["max_lag_topic_name"], summary["max_lag_partition_id"]) == (topic, 0)
    assert http.get(group["consumers"]["related"]).json()["data"] == []
    http.delete(consumer)
