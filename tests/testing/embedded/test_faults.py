"""Each fault, as seen by a real client."""

import datetime as dt
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer

from ottla.testing import EmbeddedBroker, EmbeddedCluster


def produce(broker: EmbeddedCluster, topic: str, value: str, **settings: Any) -> KafkaError | None:
    """The error of the delivery, if it failed."""
    outcomes: list[KafkaError | None] = []
    producer = Producer(broker.client_config | settings)
    producer.produce(topic, value, on_delivery=lambda error, _: outcomes.append(error))
    assert producer.flush(300) == 0
    return outcomes[0]


def values(broker: EmbeddedCluster, topic: str) -> list[bytes]:
    return [message.value for message in broker.records(topic)]


def test_an_answer_fails(broker: EmbeddedBroker) -> None:
    topic = broker.topic("orders")
    broker.faults.fail_next("Produce", "MESSAGE_TOO_LARGE")
    error = produce(broker, topic, "refused")
    assert error is not None
    assert error.code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert produce(broker, topic, "taken") is None
    assert values(broker, topic) == [b"taken"]


@pytest.mark.parametrize("api", ["Metadata", "Fetch", "ListOffsets", "FindCoordinator"])
def test_clients_get_over_errors_that_pass(broker: EmbeddedBroker, api: str) -> None:
    topic = broker.topic("orders")
    assert produce(broker, topic, "a") is None
    broker.faults.fail_next(
        api, "NOT_LEADER_OR_FOLLOWER" if api == "Fetch" else "REQUEST_TIMED_OUT"
    )
    assert read(broker, topic, 1) == [b"a"]


def test_a_commit_fails(broker: EmbeddedBroker) -> None:
    topic = broker.topic("orders")
    assert produce(broker, topic, "a") is None
    consumer = new_consumer(broker)
    consumer.subscribe([topic])
    while not consumer.consume(1, 1.0):
        pass
    broker.faults.fail_next("OffsetCommit", "OFFSET_METADATA_TOO_LARGE")
    with pytest.raises(Exception, match="metadata"):
        consumer.commit(asynchronous=False)
    consumer.commit(asynchronous=False)
    consumer.close()


def test_a_late_answer_is_only_late(broker: EmbeddedBroker) -> None:
    topic = broker.topic("orders")
    broker.faults.delay_next("Produce", 1.0)
    begin = time.monotonic()
    assert produce(broker, topic, "a") is None
    assert time.monotonic() - begin >= 1.0
    assert values(broker, topic) == [b"a"]


def test_a_lost_answer_is_written_once_or_twice(broker: EmbeddedBroker) -> None:
    once, twice = broker.topic("once"), broker.topic("twice")
    broker.faults.drop_next("Produce")
    assert produce(broker, once, "a", **{"enable.idempotence": True}) is None
    broker.faults.drop_next("Produce")
    assert produce(broker, twice, "a") is None
    assert values(broker, once) == [b"a"]
    assert values(broker, twice) == [b"a", b"a"]


def test_names_that_do_not_exist_are_refused(broker: EmbeddedBroker) -> None:
    with pytest.raises(ValueError, match="no API is called 'Product'; there are"):
        broker.faults.drop_next("Product")
    with pytest.raises(ValueError, match="no error named 'OOPS'"):
        broker.faults.fail_next("Produce", "OOPS")


def new_consumer(broker: EmbeddedCluster, **settings: Any) -> Consumer:
    defaults = {
        "group.id": "readers",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        # By default librdkafka may retry a failed metadata request only after five minutes.
        "topic.metadata.refresh.interval.ms": 1000,
    }
    return Consumer(broker.client_config | defaults | settings)


def read(broker: EmbeddedCluster, topic: str, count: int) -> list[bytes | None]:
    consumer = new_consumer(broker)
    consumer.subscribe([topic])
    found: list[bytes | None] = []
    while len(found) < count:
        found += [message.value() for message in consumer.consume(count, 1.0)]
    consumer.close()
    return found


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_session_expires(broker: EmbeddedBroker, protocol: str) -> None:
    topic = broker.topic("orders")
    lost: list[object] = []
    consumer = new_consumer(broker, **{"group.protocol": protocol})
    consumer.subscribe([topic], on_lost=lambda _, partitions: lost.extend(partitions))
    while not consumer.assignment():
        consumer.poll(0.1)
    broker.faults.expire_session("readers")
    while not lost:
        consumer.poll(0.1)
    while not consumer.assignment():
        consumer.poll(0.1)
    consumer.close()
    with pytest.raises(ValueError, match="group others has no member"):
        broker.faults.expire_session("others")


def test_time_passes(broker: EmbeddedBroker) -> None:
    """A transaction that nobody ends is aborted after a minute."""
    topic = broker.topic("orders")
    producer = Producer(broker.client_config | {"transactional.id": "one"})
    producer.init_transactions(300)
    producer.begin_transaction()
    producer.produce(topic, b"gone")
    assert producer.flush(300) == 0
    assert produce(broker, topic, "behind") is None
    assert values(broker, topic) == []
    broker.faults.advance(120)
    assert [message.value for message in broker.wait_for(topic, 1, timeout_s=300)] == [b"behind"]


def test_the_clock_is_set(broker: EmbeddedBroker) -> None:
    topic = broker.topic("orders", config={"message.timestamp.type": "LogAppendTime"})
    new_year = dt.datetime(2040, 1, 1, tzinfo=dt.UTC)
    broker.faults.set_clock(new_year)
    assert produce(broker, topic, "a") is None
    (message,) = broker.records(topic)
    assert 0 <= message.timestamp - new_year.timestamp() * 1000 < 3_600_000


def test_the_disk_is_full(broker: EmbeddedBroker) -> None:
    topic = broker.topic("orders")
    broker.faults.fill_disk()
    error = produce(broker, topic, "refused", **{"message.timeout.ms": 1000})
    assert error is not None
    broker.faults.free_disk()
    broker.kill_node()
    broker.start_node()
    assert produce(broker, topic, "taken") is None
    assert b"taken" in values(broker, topic)


def test_only_a_disk_in_memory_is_filled() -> None:
    with EmbeddedBroker(storage="directory") as broker:
        with pytest.raises(ValueError, match="only a disk in memory"):
            broker.faults.fill_disk()
        broker.heal()


@pytest.mark.parametrize("storage", ["memory", "directory"])
def test_a_node_dies_and_is_back(storage: str) -> None:
    with EmbeddedBroker(storage=storage) as broker:
        topic = broker.topic("orders")
        assert produce(broker, topic, "a") is None
        address = broker.bootstrap_servers
        for end in (broker.kill_node, broker.stop_node):
            end()
            broker.start_node()
            assert broker.bootstrap_servers == address
            assert values(broker, topic) == [b"a"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(nodes=3) as cluster:
        yield cluster


def test_the_leader_dies(cluster: EmbeddedCluster) -> None:
    topic = cluster.topic("survives", replication_factor=3)
    assert produce(cluster, topic, "before") is None
    leader = cluster.leader(topic)
    cluster.kill_node(leader)
    assert produce(cluster, topic, "after") is None
    assert cluster.leader(topic) != leader
    cluster.heal()
    assert values(cluster, topic) == [b"before", b"after"]


def test_a_leader_is_moved(cluster: EmbeddedCluster) -> None:
    topic = cluster.topic("moves", replication_factor=3)
    for node_id in (2, 3, 1):
        cluster.move_leader(topic, to=node_id)
        assert cluster.leader(topic) == node_id
        assert produce(cluster, topic, str(node_id)) is None
    assert values(cluster, topic) == [b"2", b"3", b"1"]
    with pytest.raises(ValueError, match="no partition 7"):
        cluster.move_leader(topic, 7, to=2)


def test_a_fault_of_one_node(cluster: EmbeddedCluster) -> None:
    topic = cluster.topic("one-node", replication_factor=3)
    other = next(each for each in cluster.node_ids if each != cluster.leader(topic))
    cluster.faults.fail_next("Produce", "MESSAGE_TOO_LARGE", node_id=other)
    assert produce(cluster, topic, "a") is None
    cluster.heal()
