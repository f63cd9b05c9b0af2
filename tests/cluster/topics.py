"""Topics of a cluster of processes as clients see them: leaders, in-sync replicas, records."""

import threading
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.cluster.clients import TIMEOUT_S, admin, awake, changed
from tests.cluster.processes import ClusterProcesses, wait_until


class PartitionState(NamedTuple):
    leader: int  # -1 for none.
    replicas: tuple[int, ...]
    isr: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        return self.leader >= 0 and sorted(self.isr) == sorted(self.replicas)


def create(
    cluster: ClusterProcesses,
    name: str,
    partitions: int = 1,
    replicas: int = 3,
    assignment: list[list[int]] | None = None,
    **config: str,
) -> None:
    """`assignment` names the nodes of each partition; the first leads."""
    values = {key.replace("_", "."): value for key, value in config.items()}
    if assignment is None:
        topic = NewTopic(name, partitions, replicas, config=values)
    else:
        topic = NewTopic(name, len(assignment), replica_assignment=assignment, config=values)
    client = admin(cluster)
    changed(client.create_topics([topic])[name], KafkaError.TOPIC_ALREADY_EXISTS)
    wait_until(lambda: is_whole(cluster, name), f"{name} in sync")


def states(
    cluster: ClusterProcesses, name: str, node_id: int | None = None
) -> dict[int, PartitionState]:
    """As one node sees them, or any node."""
    client = admin(cluster)
    if node_id is not None:
        client = AdminClient({"bootstrap.servers": cluster.bootstrap_of(node_id), "log_level": 0})
    topic = client.list_topics(name, timeout=TIMEOUT_S).topics[name]
    return {
        index: PartitionState(partition.leader, tuple(partition.replicas), tuple(partition.isrs))
        for index, partition in topic.partitions.items()
    }


def state(cluster: ClusterProcesses, name: str, node_id: int | None = None) -> PartitionState:
    """The state of a topic's only partition."""
    return states(cluster, name, node_id)[0]


def is_whole(cluster: ClusterProcesses, *names: str) -> bool:
    return all(partition.is_whole for name in names for partition in states(cluster, name).values())


def produce(
    cluster: ClusterProcesses, name: str, *values: str, partition: int = 0, **config: Any
) -> list[KafkaError | None]:
    """Returns the error of each record, in order, once all are answered.

    Idempotent, because the producer writes again when a leader moves.
    """
    outcomes: list[KafkaError | None] = []
    settings = {"bootstrap.servers": awake(cluster), "enable.idempotence": True, "log_level": 0}
    producer = Producer(
        settings | {key.replace("_", "."): setting for key, setting in config.items()}
    )
    for value in values:
        producer.produce(
            name,
            value.encode(),
            partition=partition,
            on_delivery=lambda error, _: outcomes.append(error),
        )
    assert producer.flush(TIMEOUT_S) == 0
    return outcomes


def consume(bootstrap: str, name: str, count: int, partition: int = 0, **config: Any) -> list[str]:
    """The first records of a partition."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "tests", "log_level": 0}
    consumer = Consumer(
        settings | {key.replace("_", "."): setting for key, setting in config.items()}
    )
    consumer.assign([TopicPartition(name, partition, 0)])
    values: list[str] = []
    try:
        while len(values) < count:
            for message in consumer.consume(count - len(values), TIMEOUT_S):
                assert message.error() is None, message.error()
                values.append((message.value() or b"").decode())
    finally:
        consumer.close()
    return values


class Traffic(threading.Thread):
    """Writes one record after another to any partition of a topic until stopped."""

    def __init__(self, bootstrap: str, name: str, **config: Any) -> None:
        super().__init__(daemon=True)
        self.errors: list[KafkaError] = []
        self.count = 0  # Acknowledged.
        self._name = name
        self._stopping = threading.Event()
        settings = {"bootstrap.servers": bootstrap, "acks": "all", "log_level": 0}
        self._producer = Producer(
            settings | {key.replace("_", "."): setting for key, setting in config.items()}
        )

    def run(self) -> None:
        while not self._stopping.is_set():
            self._producer.produce(self._name, b"traffic", on_delivery=self._on_delivery)
            self._producer.poll(0.005)
        self._producer.flush(TIMEOUT_S)

    def wait_for_more(self, count: int = 20) -> None:
        goal = self.count + count
        wait_until(lambda: self.count >= goal, "more records")

    def __enter__(self) -> "Traffic":
        self.start()
        self.wait_for_more(1)
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self.join()

    def _on_delivery(self, error: KafkaError | None, _: Any) -> None:
        if error is None:
            self.count += 1
        else:
            self.errors.append(error)
