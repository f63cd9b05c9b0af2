"""An in-process broker: real clients, nothing left behind."""

import gc
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from ottla.testing import EmbeddedBroker, NotInTime, OttlaContainer, Storage

PATIENCE_S = 60
MAPPED = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,PLAINTEXT_2:PLAINTEXT"}


def produce(broker: EmbeddedBroker, topic: str, *values: str) -> None:
    producer = Producer(broker.client_config)
    for value in values:
        producer.produce(topic, value, key=value)
    assert producer.flush(120) == 0


def test_more_listeners_stand_beside_the_open_one() -> None:
    with EmbeddedBroker(config={"listeners": "PLAINTEXT_2://127.0.0.1:0", **MAPPED}) as broker:
        topic = broker.topic("orders")
        second = broker.servers_of("PLAINTEXT_2")
        assert second != broker.bootstrap_servers
        producer = Producer({"bootstrap.servers": second})
        producer.produce(topic, b"lamp")
        assert producer.flush(120) == 0
        with pytest.raises(ValueError, match="no listener SSL"):
            broker.servers_of("SSL")


@pytest.mark.parametrize("storage", list(Storage))
def test_serves_real_clients(storage: Storage) -> None:
    with EmbeddedBroker(storage=storage) as broker:
        topic = broker.topic("orders", partitions=2)
        produce(broker, topic, "a", "b", "c")
        settings = {"group.id": "readers", "auto.offset.reset": "earliest"}
        consumer = Consumer(broker.client_config | settings)
        consumer.subscribe([topic])
        read: list[bytes] = []
        while len(read) < 3:
            read += [message.value() or b"" for message in consumer.consume(3, 1.0)]
        consumer.close()
        assert sorted(read) == [b"a", b"b", b"c"]
        assert sorted(message["value"] for message in broker.records(topic)) == [b"a", b"b", b"c"]


def test_records_of_one_partition_are_in_order(broker: EmbeddedBroker) -> None:
    topic = broker.topic("orders")
    produce(broker, topic, *(str(number) for number in range(500)))
    messages = broker.wait_for(topic, 500)
    assert [message.offset for message in messages] == list(range(500))
    assert [message.value for message in messages] == [b"%d" % number for number in range(500)]
    assert broker.records(topic, 0) == messages
    assert broker.records("missing") == []


def test_waits_for_the_records_that_are_meant(broker: EmbeddedBroker) -> None:
    topic = broker.topic("orders")
    produce(broker, topic, "a", "b", "a")
    assert len(broker.wait_for(topic, 2, where=lambda message: message.value == b"a")) == 2
    with pytest.raises(NotInTime, match="has 3 of 4 records"):
        broker.wait_for(topic, 4, timeout_s=0)


def test_aborted_records_are_left_out(broker: EmbeddedBroker) -> None:
    topic = broker.topic("orders")
    producer = Producer(broker.client_config | {"transactional.id": "one"})
    producer.init_transactions(120)
    for value, end in (
        (b"gone", producer.abort_transaction),
        (b"kept", producer.commit_transaction),
    ):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush(120)
        end(120)
    assert [message.value for message in broker.wait_for(topic, 1)] == [b"kept"]
    everything = broker.records(topic, committed=False)
    assert [message.value for message in everything] == [b"gone", b"kept"]


def test_data_in_a_named_directory_is_there_again(tmp_path: Path) -> None:
    with EmbeddedBroker(data=tmp_path) as broker:
        topic = broker.topic("orders")
        produce(broker, topic, "a")
    with EmbeddedBroker(data=tmp_path) as broker:
        assert [message.value for message in broker.wait_for(topic, 1)] == [b"a"]


def test_settings_are_kafkas() -> None:
    with EmbeddedBroker(config={"num.partitions": 3, "auto.create.topics.enable": True}) as broker:
        produce(broker, "made", "a", "b", "c", "d", "e", "f", "g")
        assert {message.partition for message in broker.wait_for("made", 7)} == {0, 1, 2}


def test_a_wrong_setting_is_refused_and_leaves_nothing() -> None:
    before = set(threading.enumerate())
    with (
        pytest.raises(Exception, match=r"num\.partitions"),
        EmbeddedBroker(config={"num.partitions": "many"}),
    ):
        pass
    assert set(threading.enumerate()) <= before


def test_a_port_that_is_taken_is_refused() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OSError, match="in use"), EmbeddedBroker(port=taken.getsockname()[1]):
            pass


def test_hundred_brokers_leave_nothing() -> None:
    def live() -> None:
        with EmbeddedBroker() as broker:
            assert broker.records(broker.topic("orders")) == []

    for _ in range(3):
        live()
    threads, descriptors, objects = set(threading.enumerate()), _descriptors(), _objects()
    for _ in range(100):
        live()
    assert set(threading.enumerate()) <= threads
    assert _objects() - objects < 500  # One broker has more than ten thousand.
    # Clients left by other tests of this process may be connecting right now.
    deadline = time.monotonic() + PATIENCE_S
    while _descriptors() > descriptors:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _objects() -> int:
    gc.collect()
    return len(gc.get_objects())


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_has_the_interface_of_a_kafka_container() -> None:
    container = OttlaContainer("confluentinc/cp-kafka:7.6.0").with_kraft()
    container.with_env("KAFKA_NUM_PARTITIONS", "2").with_env("KAFKA_HEAP_OPTS", "-Xmx1g")
    with container as kafka:
        server = kafka.get_bootstrap_server()
        assert server == f"{kafka.get_container_host_ip()}:{kafka.get_exposed_port(9093)}"
        produce(kafka.broker, "made", "a", "b", "c", "d")
        assert {message.partition for message in kafka.broker.wait_for("made", 4)} == {0, 1}


def test_import_is_cheap() -> None:
    """A plugin that everyone loads must cost nothing if unused."""
    heavy = "{'ottla.node', 'ottla.handlers', 'confluent_kafka', 'kio', 'asyncio', 'uvloop'}"
    assert _printed(f"import sys, ottla.testing.plugin; print({heavy} & set(sys.modules))") == (
        "set()\n"
    )


def test_a_start_imports_only_what_a_single_node_needs() -> None:
    """Imports dominate the first start, and internal messages are most of kio."""
    printed = _printed(
        "import sys\n"
        "from ottla.testing import EmbeddedBroker\n"
        "with EmbeddedBroker(): print(*sys.modules)"
    )
    imported = {name.removeprefix("kio.schema.").split(".")[0] for name in printed.split()}
    assert "broker_registration" in imported
    between_nodes = {"vote", "fetch_snapshot", "alter_partition", "write_txn_markers", "fetch"}
    along_with_others = {"argparse", "difflib", "email", "zipfile"}
    unwanted = {"hypothesis", "confluent_kafka", "uvloop", *between_nodes, *along_with_others}
    assert not imported & unwanted


def _printed(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout
