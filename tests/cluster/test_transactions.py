"""Transactions over partitions of several brokers: atomic, exactly once, whichever broker dies."""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer
from kio.static.primitive import i8
from tests.clients.transaction_requests import TransactionWire
from tests.clients.wire import Wire
from tests.cluster.clients import (
    GROUP,
    TIMEOUT_S,
    TRANSACTION,
    coordinator,
    create_on,
    create_topic,
    delete_topic,
    leaders,
    read_committed,
    stable_ends,
)
from tests.cluster.conftest import StartCluster
from tests.cluster.processes import PATIENT, ClusterProcesses, wait_until

from ottla.protocol.errors import ErrorCode

# One worker: the module's cluster takes seconds to start.
pytestmark = [pytest.mark.process, pytest.mark.xdist_group("transactions of a cluster")]

FEW_COORDINATORS = (
    *("--set", "transaction.state.log.num.partitions=3"),
    *("--set", "offsets.topic.num.partitions=3"),
)
PARTITIONS = 6
ORDERS = [("orders", index) for index in range(PARTITIONS)]


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcesses]:
    """An undisturbed cluster; each test has its own topic."""
    directory = tmp_path_factory.mktemp("calm")
    with ClusterProcesses(directory, 3, *FEW_COORDINATORS, *PATIENT) as cluster:
        cluster.wait_for_voters(1, 2, 3)
        yield cluster


@pytest.fixture
def topic_partitions(
    calm: ClusterProcesses, request: pytest.FixtureRequest
) -> list[tuple[str, int]]:
    """The partitions of a new topic in it."""
    topic = request.node.name
    create_topic(calm, topic, PARTITIONS)
    topic_partitions = [(topic, index) for index in range(PARTITIONS)]
    stable_ends(calm, topic_partitions)  # Each leader knows that it leads.
    return topic_partitions


@pytest.fixture
def cluster(start_cluster: StartCluster) -> ClusterProcesses:
    cluster = start_cluster(3, *FEW_COORDINATORS)
    cluster.wait_for_voters(1, 2, 3)
    create_topic(cluster, "orders", PARTITIONS)
    return cluster


def new_producer(cluster: ClusterProcesses, transactional_id: str = "payments") -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "transactional.id": transactional_id,
            "linger.ms": 0,
            "transaction.timeout.ms": 600_000,
            "log_level": 0,
        }
    )
    producer.init_transactions(TIMEOUT_S)
    return producer


def send(producer: Producer, value: bytes, *topic_partitions: tuple[str, int]) -> None:
    for topic, partition in topic_partitions:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(TIMEOUT_S) == 0


def commit(producer: Producer, value: bytes, *topic_partitions: tuple[str, int]) -> None:
    producer.begin_transaction()
    send(producer, value, *topic_partitions)
    producer.commit_transaction(TIMEOUT_S)


def state(cluster: ClusterProcesses, transactional_id: str = "payments") -> str:
    """The transaction according to its coordinator; None while that is loading."""
    for node_id in cluster.awake:
        with Wire(cluster.bootstrap_of(node_id)) as wire:
            for listed in TransactionWire(wire, transactional_id).list().transaction_states:
                if listed.transactional_id == transactional_id:
                    return str(listed.transaction_state)
    return ""


def everywhere(
    topic_partitions: list[tuple[str, int]], *values: bytes
) -> dict[tuple[str, int], list[bytes]]:
    return {topic_partition: [*values] for topic_partition in topic_partitions}


def other_than(*ids: int) -> int:
    return next(node_id for node_id in (1, 2, 3) if node_id not in ids)


@pytest.mark.parametrize("kind", [GROUP, TRANSACTION])
def test_every_node_names_the_same_coordinator(calm: ClusterProcesses, kind: i8) -> None:
    """All of them are needed; on a busy machine one may be declared dead for a while."""

    def is_agreed() -> bool:
        named = [
            {coordinator(calm, f"{number}", kind, asked) for asked in calm.ids}
            for number in range(9)
        ]
        return all(len(ids) == 1 for ids in named) and set.union(*named) == {1, 2, 3}

    wait_until(is_agreed, "one coordinator for each key, spread over the nodes")


def test_partitions_and_coordinators_may_be_on_any_broker(
    calm: ClusterProcesses, topic_partitions: list[tuple[str, int]]
) -> None:
    ids = [f"payments-{number}" for number in range(9)]
    for number, transactional_id in enumerate(ids):
        producer = new_producer(calm, transactional_id)
        for commits in (True, False):
            producer.begin_transaction()
            send(producer, b"%d %d" % (number, commits), *topic_partitions)
            if commits:
                producer.commit_transaction(TIMEOUT_S)
            else:
                producer.abort_transaction(TIMEOUT_S)
    found = read_committed(calm, topic_partitions)
    expected = [b"%d 1" % number for number in range(9)]
    assert {
        topic_partition: sorted(values) for topic_partition, values in found.items()
    } == everywhere(topic_partitions, *expected)


def test_a_newer_producer_has_its_partitions_added_by_their_leaders(
    calm: ClusterProcesses, topic_partitions: list[tuple[str, int]]
) -> None:
    """No client used here can do without AddPartitionsToTxn (KIP-890)."""
    led_by = leaders(calm, topic_partitions[0][0])
    with Wire(calm.bootstrap_of(coordinator(calm, "newer", TRANSACTION))) as wire:
        asked = TransactionWire(wire, "newer")
        producer = asked.producer()
        for number in range(6):
            for topic, index in topic_partitions:
                with Wire(calm.bootstrap_of(led_by[index])) as leader:
                    written = TransactionWire(leader, "newer").produce(
                        producer, topic, b"%d" % number, partition=index
                    )
                    assert written.error_code is ErrorCode.none
            producer = asked.committed(producer, commit=number % 2 == 0)
    assert read_committed(calm, topic_partitions) == everywhere(topic_partitions, b"0", b"2", b"4")


def test_a_write_that_comes_late_is_refused_by_every_broker(
    calm: ClusterProcesses, topic_partitions: list[tuple[str, int]]
) -> None:
    """By an older client's rules: the transaction has only what the client added."""
    led_by = leaders(calm, topic_partitions[0][0])
    with Wire(calm.bootstrap_of(coordinator(calm, "late", TRANSACTION))) as wire:
        asked = TransactionWire(wire, "late")
        producer = asked.producer()
        assert asked.add(producer, topic_partitions[0][0], 0) == [ErrorCode.none]
        for topic, index in topic_partitions:
            with Wire(calm.bootstrap_of(led_by[index])) as leader:
                written = TransactionWire(leader, "late").produce(
                    producer, topic, b"late", partition=index, version=11
                )
                expected = ErrorCode.transaction_abortable if index else ErrorCode.none
                assert written.error_code is expected
        assert asked.end_as_older_client(producer) is ErrorCode.none
    found = read_committed(calm, topic_partitions)
    assert found == {
        topic_partition: [b"late"] if topic_partition[1] == 0 else []
        for topic_partition in topic_partitions
    }


def test_the_next_coordinator_ends_what_the_last_one_has_decided(
    cluster: ClusterProcesses,
) -> None:
    """The coordinator dies after the decision is stored, before one of the markers is written."""
    first = coordinator(cluster, "payments", TRANSACTION)
    away = other_than(first)
    create_on(cluster, "lonely", away)
    topic_partitions = [("lonely", 0), *ORDERS]
    producer = new_producer(cluster)
    producer.begin_transaction()
    send(producer, b"decided", *topic_partitions)
    cluster.kill(away)
    producer.commit_transaction(TIMEOUT_S)
    wait_until(lambda: state(cluster) == "PrepareCommit", "the decision")
    cluster.kill(first)
    cluster.restart(away)
    wait_until(lambda: state(cluster) == "CompleteCommit", "the end")
    assert coordinator(cluster, "payments", TRANSACTION) != first
    assert read_committed(cluster, topic_partitions) == everywhere(topic_partitions, b"decided")
    cluster.restart(first)
    commit(new_producer(cluster), b"next", *topic_partitions)
    assert read_committed(cluster, topic_partitions) == everywhere(
        topic_partitions, b"decided", b"next"
    )


def test_a_topic_that_is_deleted_while_its_leader_is_away_does_not_hold_up_the_end(
    cluster: ClusterProcesses,
) -> None:
    away = other_than(coordinator(cluster, "payments", TRANSACTION))
    create_on(cluster, "lonely", away)
    producer = new_producer(cluster)
    producer.begin_transaction()
    send(producer, b"decided", ("lonely", 0), *ORDERS)
    cluster.kill(away)
    producer.commit_transaction(TIMEOUT_S)
    wait_until(lambda: state(cluster) == "PrepareCommit", "the decision")
    delete_topic(cluster, "lonely")
    wait_until(lambda: state(cluster) == "CompleteCommit", "the end")
    assert read_committed(cluster, ORDERS) == everywhere(ORDERS, b"decided")


@pytest.mark.parametrize(
    "victim", ["coordinator", "leader"], ids=["the coordinator", "a partition's leader"]
)
def test_a_broker_that_dies_within_a_transaction_does_not_end_it(
    cluster: ClusterProcesses, victim: str
) -> None:
    find: dict[str, Callable[[], int]] = {
        "coordinator": lambda: coordinator(cluster, "payments", TRANSACTION),
        "leader": lambda: leaders(cluster, "orders")[0],
    }
    producer = new_producer(cluster)
    commit(producer, b"0", *ORDERS)
    for number in (1, 2, 3):
        producer.begin_transaction()
        send(producer, b"%d" % number, *ORDERS[:3])
        killed = find[victim]()
        cluster.kill(killed)
        send(producer, b"%d" % number, *ORDERS[3:])
        producer.commit_transaction(TIMEOUT_S)
        cluster.restart(killed)
    assert read_committed(cluster, ORDERS) == everywhere(ORDERS, b"0", b"1", b"2", b"3")
