"""Acknowledged records survive a stop and a kill of the broker."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from tests.broker_process import BrokerProcess
from tests.clients.client import TIMEOUT_S, Client, ProduceOptions, Sent
from tests.clients.confluent_client import ConfluentClient
from tests.clients.requests import metadata
from tests.clients.wire import Wire

pytestmark = pytest.mark.process

TOPIC = "orders"


@pytest.fixture
def restartable(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path) as process:
        yield process


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_records_topics_and_configs_survive(restartable: BrokerProcess, ending: str) -> None:
    client: Client = ConfluentClient(restartable.bootstrap)
    client.create_topic(TOPIC, 2, {"retention.ms": "12345678"})
    records = [Sent(key=b"%d" % number, partition=number % 2) for number in range(100)]
    client.produce(TOPIC, records, ProduceOptions(codec="zstd"))
    getattr(restartable, ending)()

    restartable.start()
    client = ConfluentClient(restartable.bootstrap)
    assert client.partitions(TOPIC) == [0, 1]
    assert client.topic_config(TOPIC)["retention.ms"] == "12345678"
    for partition in range(2):
        assert client.offsets(TOPIC, partition) == (0, 50)
        keys = [record.key for record in client.consume(TOPIC, partition, 0, 50)]
        assert keys == [b"%d" % number for number in range(partition, 100, 2)]
    assert client.produce(TOPIC, [Sent()]) == [50]


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_committed_offsets_survive(restartable: BrokerProcess, ending: str) -> None:
    client = ConfluentClient(restartable.bootstrap)
    client.create_topic(TOPIC)
    client.produce(TOPIC, [Sent()] * 10)
    topic_partition = TopicPartition(TOPIC, 0, 7, metadata="note")
    with client.consumer(**{"group.id": "readers"}) as consumer:
        consumer.commit(offsets=[topic_partition], asynchronous=False)
    getattr(restartable, ending)()
    restartable.start()
    with ConfluentClient(restartable.bootstrap).consumer(**{"group.id": "readers"}) as consumer:
        [found] = consumer.committed([TopicPartition(TOPIC, 0)], timeout=TIMEOUT_S)
    assert (found.offset, found.metadata) == (7, "note")


def test_a_deleted_topic_stays_deleted(restartable: BrokerProcess) -> None:
    client: Client = ConfluentClient(restartable.bootstrap)
    client.create_topic(TOPIC)
    client.produce(TOPIC, [Sent()])
    client.delete_topic(TOPIC)
    restartable.kill()
    restartable.start()
    client = ConfluentClient(restartable.bootstrap)
    assert TOPIC not in client.topics()
    client.create_topic(TOPIC)
    assert client.offsets(TOPIC, 0) == (0, 0)


def test_stopping_is_an_orderly_end(restartable: BrokerProcess) -> None:
    assert restartable.stop() == 0


def test_a_torn_tail_is_cut_off(restartable: BrokerProcess) -> None:
    client: Client = ConfluentClient(restartable.bootstrap)
    client.create_topic(TOPIC)
    client.produce(TOPIC, [Sent(value=b"%d" % number) for number in range(3)])
    restartable.kill()
    [segment] = (restartable.data / f"{TOPIC}-0").glob("*.log")
    with segment.open("ab") as opened:
        opened.write(segment.read_bytes()[:70])
    restartable.start()
    client = ConfluentClient(restartable.bootstrap)
    assert client.offsets(TOPIC, 0) == (0, 3)
    assert client.produce(TOPIC, [Sent(value=b"next")]) == [3]


def test_a_data_directory_in_use_is_refused(restartable: BrokerProcess, tmp_path: Path) -> None:
    second = BrokerProcess(tmp_path / "second")
    (tmp_path / "second").mkdir()
    second.data = restartable.data
    with pytest.raises(AssertionError, match="did not start") as failure:
        second.start()
    assert "Traceback" not in str(failure.value)
    assert ConfluentClient(restartable.bootstrap).topics() is not None


def test_the_first_answer_of_a_broker_names_it(tmp_path: Path) -> None:
    """A client whose metadata has no broker asks again only after a long time."""
    process = BrokerProcess(tmp_path)
    starting = threading.Thread(target=process.start)
    starting.start()
    try:
        response = first_answer(process.bootstrap, metadata())
    finally:
        starting.join()
        process.stop()
    assert len(response.brokers) == 1


def first_answer(bootstrap: str, request: Any) -> Any:
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            with Wire(bootstrap) as connection:
                return connection.call(request)
        except (OSError, EOFError):
            assert time.monotonic() < deadline
