"""Metrics of three nodes, with real clients: what each node reports, and what it does not."""

import shutil
import subprocess
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.node.metrics_pages import Samples, page, samples, scrape, scrape_until

from ottla.node.metrics.page import SECTIONS
from ottla.testing.embedded.cluster import EmbeddedCluster

HOUR_S = 3600


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    config = {
        "metrics.port": "0",
        "metrics.host": "127.0.0.1",
        "metrics.lag.interval.ms": "100",
        "probe.interval.ms": "200",
    }
    with EmbeddedCluster(3, config=config) as cluster:
        yield cluster


def url(cluster: EmbeddedCluster, node_id: int) -> str:
    return f"http://127.0.0.1:{cluster._node(node_id).node.metrics_port}/metrics"


def urls(cluster: EmbeddedCluster) -> list[str]:
    return [url(cluster, node_id) for node_id in cluster.node_ids]


def total(pages: list[Samples], *key: str) -> float:
    return sum(found.get(key, 0.0) for found in pages)


def commit(cluster: EmbeddedCluster, group: str, topic: str, *offsets: int) -> None:
    consumer = Consumer({**cluster.client_config, "group.id": group})
    committed = [TopicPartition(topic, index, offset) for index, offset in enumerate(offsets)]
    consumer.commit(offsets=committed, asynchronous=False)
    consumer.close()


def produce(
    cluster: EmbeddedCluster, topic: str, count: int, partition: int = 0, age_s: int = 0
) -> None:
    producer = Producer({**cluster.client_config, "linger.ms": 0})
    time_ms = int((time.time() - age_s) * 1000)
    for index in range(count):
        producer.produce(topic, str(index).encode(), partition=partition, timestamp=time_ms)
    assert producer.flush(60) == 0


def coordinator_url(cluster: EmbeddedCluster, group: str, topic: str) -> str:
    """The value from the only node that reports the group."""
    key = ("kafka_consumergroup_current_offset_sum", group, topic)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        having = [each for each in urls(cluster) if key in scrape(each)]
        if having:
            assert len(having) == 1
            return having[0]
    raise AssertionError(f"nobody tells of {group}")


def test_lag_of_partitions_that_other_brokers_lead(cluster: EmbeddedCluster) -> None:
    topic = cluster.topic("lagging", partitions=3, replication_factor=1)
    leaders = {cluster.leader(topic, index) for index in range(3)}
    assert len(leaders) == 3, "each broker leads one"
    for index in range(3):
        produce(cluster, topic, 5, index, age_s=HOUR_S)
    commit(cluster, "readers", topic, 1, 5, 0)
    found = scrape_until(
        coordinator_url(cluster, "readers", topic),
        lambda found: total([found], "kafka_consumergroup_lag_sum", "readers", topic) == 9,
    )
    lags = [found["ottla_group_lag_records", "readers", str(index), topic] for index in range(3)]
    assert lags == [4, 0, 5]
    assert [found["kafka_consumergroup_lag", "readers", str(i), topic] for i in range(3)] == lags
    assert found["kafka_consumergroup_current_offset", "readers", "0", topic] == 1
    for index, age_s in ((0, HOUR_S), (1, 0), (2, HOUR_S)):
        seconds = found["ottla_group_lag_seconds", "readers", str(index), topic]
        assert age_s <= seconds <= age_s + HOUR_S * (age_s > 0)


def test_lag_follows_the_group(cluster: EmbeddedCluster) -> None:
    topic = cluster.topic("followed")
    produce(cluster, topic, 3, age_s=2 * HOUR_S)
    produce(cluster, topic, 3)
    commit(cluster, "catching-up", topic, 0)
    key = ("ottla_group_lag_seconds", "catching-up", "0", topic)
    of_group = coordinator_url(cluster, "catching-up", topic)
    scrape_until(of_group, lambda found: found.get(key, 0) >= 2 * HOUR_S)
    commit(cluster, "catching-up", topic, 3)
    found = scrape_until(of_group, lambda found: found[key] < 2 * HOUR_S)
    assert found["ottla_group_lag_records", "catching-up", "0", topic] == 3
    commit(cluster, "catching-up", topic, 6)
    scrape_until(of_group, lambda found: found[key] == 0)


def test_traffic_is_counted_where_it_is(cluster: EmbeddedCluster) -> None:
    topic = cluster.topic("traffic", replication_factor=2)
    produce(cluster, topic, 10)
    assert len(cluster.records(topic)) == 10
    leader = url(cluster, cluster.leader(topic))
    pages = [scrape(each) for each in urls(cluster)]
    assert scrape(leader)["ottla_topic_records_in_total", topic] == 10
    assert total(pages, "ottla_topic_records_in_total", topic) == 10
    assert total(pages, "ottla_topic_records_out_total", topic) >= 10
    written = total(pages, "ottla_topic_bytes_in_total", topic)
    assert total(pages, "ottla_topic_replication_bytes_in_total", topic) == written > 100
    assert total(pages, "kafka_topic_partition_current_offset", "0", topic) == 10
    assert total(pages, "kafka_topic_partitions", topic) == 1
    assert total(pages, "kafka_brokers") == 3
    assert total(pages, "ottla_controller") == 1


def test_latencies_and_errors_of_apis(cluster: EmbeddedCluster) -> None:
    topic = cluster.topic("measured")
    leader = url(cluster, cluster.leader(topic))
    before = scrape(leader)
    produce(cluster, topic, 1)
    failures: list[object] = []
    config = {**cluster.client_config, "message.max.bytes": 10_000_000}
    large = Producer(config)
    large.produce(topic, bytes(3_000_000), on_delivery=lambda error, _: failures.append(error))
    large.flush(60)
    after = scrape(leader)
    assert failures
    assert failures[0] is not None

    def grown(*key: str) -> float:
        return after.get(key, 0) - before.get(key, 0)

    assert grown("ottla_requests_total", "Produce") >= 2
    name = "ottla_request_duration_seconds"
    assert grown(f"{name}_count", "Produce") == grown("ottla_requests_total", "Produce")
    assert grown(f"{name}_bucket", "Produce", "+Inf") == grown(f"{name}_count", "Produce")
    assert after[f"{name}_sum", "Produce"] > 0
    assert grown("ottla_request_errors_total", "Produce", "MESSAGE_TOO_LARGE") == 1


def test_groups_and_rebalances(cluster: EmbeddedCluster) -> None:
    topic = cluster.topic("balanced")
    commit(cluster, "seen-before", topic, 0)
    of_group = coordinator_url(cluster, "seen-before", topic)
    before = scrape(of_group)
    consumer = Consumer({**cluster.client_config, "group.id": "seen-before"})
    consumer.subscribe([topic])
    while not consumer.assignment():
        consumer.poll(0.1)
    after = scrape_until(
        of_group, lambda found: found.get(("kafka_consumergroup_members", "seen-before")) == 1
    )
    consumer.close()
    assert after["ottla_groups", "Stable", "classic"] >= 1
    assert after["ottla_group_rebalances_total",] > before["ottla_group_rebalances_total",]


def test_open_transactions(cluster: EmbeddedCluster) -> None:
    topic = cluster.topic("transactional")
    producer = Producer({**cluster.client_config, "transactional.id": "metrics"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, b"pending")
    producer.flush(60)
    pages = [scrape(each) for each in urls(cluster)]
    assert total(pages, "ottla_open_transactions") == 1
    assert total(pages, "ottla_hanging_transactions") == 0
    assert total(pages, "ottla_transactional_ids", "Ongoing") == 1
    producer.commit_transaction(60)
    leader = url(cluster, cluster.leader(topic))
    scrape_until(leader, lambda found: found["ottla_open_transactions",] == 0)


def test_what_is_there_is_declared_and_understood(cluster: EmbeddedCluster) -> None:
    declared = {family.name for section in SECTIONS for family in section.families}
    for each in urls(cluster):
        text = page(each)
        named = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")}
        own = {name for name in named if name.startswith(("ottla_", "kafka_"))}
        assert own <= declared
        assert samples(text)
        if shutil.which("promtool"):
            checked = subprocess.run(
                ["promtool", "check", "metrics"], input=text, text=True, capture_output=True
            )
            assert checked.returncode in (0, 3), checked.stderr  # 3 means style advice.


def test_the_probe_goes_through_every_broker(cluster: EmbeddedCluster) -> None:
    (active,) = [each for each in urls(cluster) if scrape(each)["ottla_controller",] == 1]
    found = scrape_until(
        active,
        lambda found: all(
            found.get(("ottla_probe_records_total", str(broker), "back"), 0) >= 2
            for broker in cluster.node_ids
        ),
    )
    assert found["ottla_probe_duration_seconds_count", "1"] >= 2
    for other in urls(cluster):
        if other != active:
            assert ("ottla_probe_records_total", "1", "back") not in scrape(other)


def test_there_is_only_one_page(cluster: EmbeddedCluster) -> None:
    with pytest.raises(OSError, match="404"):
        page(url(cluster, 1).replace("/metrics", "/"))
