"""What real clients see of a cluster: leaders, coordinators and records."""

import itertools
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.static.primitive import i8
from tests.clients.wire import Wire
from tests.cluster.processes import ClusterProcesses, wait_until

TIMEOUT_S = 120
# librdkafka keeps asking a broker that died, and does not look for another leader.
LOOK_TIMEOUTS_S = (3, 6, 12, 24)
GROUP, TRANSACTION = i8(0), i8(1)


def admin(cluster: ClusterProcesses) -> AdminClient:
    return AdminClient({"bootstrap.servers": awake(cluster), "log_level": 0})


def awake(cluster: ClusterProcesses) -> str:
    return ",".join(cluster.bootstrap_of(node_id) for node_id in cluster.awake)


def create_topic(
    cluster: ClusterProcesses, name: str, partitions: int, replication_factor: int = 3
) -> None:
    _create(cluster, NewTopic(name, partitions, replication_factor))


def create_on(cluster: ClusterProcesses, name: str, node_id: int) -> None:
    """A topic with one partition, whose only replica is on this node."""
    _create(cluster, NewTopic(name, num_partitions=1, replica_assignment=[[node_id]]))


def _create(cluster: ClusterProcesses, topic: NewTopic) -> None:
    client = admin(cluster)  # It must outlive the call.
    changed(
        client.create_topics([topic], request_timeout=TIMEOUT_S)[topic.topic],
        KafkaError.TOPIC_ALREADY_EXISTS,
    )


def delete_topic(cluster: ClusterProcesses, name: str) -> None:
    client = admin(cluster)
    changed(client.delete_topics([name])[name], KafkaError.UNKNOWN_TOPIC_OR_PART)


def changed(outcome: "Future[None]", already: int) -> None:
    """Retries; the previous controller may already have made the change."""
    try:
        outcome.result(TIMEOUT_S)
    except KafkaException as error:
        if error.args[0].code() != already:
            raise


def leaders(cluster: ClusterProcesses, topic: str) -> list[int]:
    """By partition; -1 where there is none."""
    found = admin(cluster).list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions
    return [found[index].leader for index in sorted(found)]


def replicas(cluster: ClusterProcesses, topic: str) -> list[tuple[list[int], list[int]]]:
    """By partition: all of them, and those in sync."""
    found = admin(cluster).list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions
    return [(sorted(found[index].replicas), sorted(found[index].isrs)) for index in sorted(found)]


def coordinator(
    cluster: ClusterProcesses, key: str, kind: i8 = GROUP, node_id: int | None = None
) -> int:
    """The coordinator according to a node, or to any awake node."""
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,))
    found: list[Any] = []

    def find() -> bool:
        with Wire(cluster.bootstrap_of(node_id or cluster.awake[0])) as wire:
            found.append(wire.call(request).coordinators[0])
        return found[-1].error_code == 0 and found[-1].node_id in cluster.awake

    wait_until(find, f"a coordinator of {key}")
    return int(found[-1].node_id)


def end_offsets(
    cluster: ClusterProcesses,
    topic_partitions: Iterable[tuple[str, int]],
    isolation: IsolationLevel,
    timeout_s: float = LOOK_TIMEOUTS_S[0],
) -> dict[tuple[str, int], int]:
    """The end for consumers of this isolation level; KafkaException while a leader moves."""
    asked: dict[TopicPartition, Any] = {
        TopicPartition(*topic_partition): OffsetSpec.latest()
        for topic_partition in topic_partitions
    }
    client = admin(cluster)
    answers = client.list_offsets(asked, isolation_level=isolation, request_timeout=timeout_s)
    return {
        (topic_partition.topic, topic_partition.partition): answer.result(TIMEOUT_S).offset
        for topic_partition, answer in answers.items()
    }


def stable_ends(
    cluster: ClusterProcesses, topic_partitions: Iterable[tuple[str, int]]
) -> dict[tuple[str, int], int]:
    """The ends of partitions, once no transaction is open in any of them."""
    topic_partitions = list(topic_partitions)
    found: dict[tuple[str, int], int] = {}
    timeouts_s = itertools.chain(LOOK_TIMEOUTS_S, itertools.repeat(LOOK_TIMEOUTS_S[-1]))

    def is_stable() -> bool:
        timeout_s = next(timeouts_s)
        try:
            found.update(
                end_offsets(cluster, topic_partitions, IsolationLevel.READ_COMMITTED, timeout_s)
            )
            ends = end_offsets(
                cluster, topic_partitions, IsolationLevel.READ_UNCOMMITTED, timeout_s
            )
        except KafkaException:
            return False  # A leader moves.
        return found == ends and min(ends.values()) >= 0

    wait_until(is_stable, "the end of all transactions")
    return found


def read_committed(
    cluster: ClusterProcesses, topic_partitions: Iterable[tuple[str, int]]
) -> dict[tuple[str, int], list[bytes]]:
    """All committed records, in order; waits until no transaction is open."""
    topic_partitions = list(topic_partitions)
    ends = stable_ends(cluster, topic_partitions)
    consumer = Consumer(
        {
            "bootstrap.servers": awake(cluster),
            "group.id": "unused",
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    found: dict[tuple[str, int], list[bytes]] = {
        topic_partition: [] for topic_partition in topic_partitions
    }
    filled = [topic_partition for topic_partition in topic_partitions if ends[topic_partition] > 0]
    consumer.assign([TopicPartition(*topic_partition, 0) for topic_partition in filled])

    def is_read() -> bool:
        for message in consumer.consume(500, 0.2):
            if message.error() is None:
                topic_partition = message.topic() or "", message.partition() or 0
                found[topic_partition].append(message.value() or b"")
        positions = consumer.position(
            [TopicPartition(*topic_partition) for topic_partition in filled]
        )
        return all(
            position.offset >= ends[position.topic, position.partition] for position in positions
        )

    try:
        wait_until(is_read, "all records")
    finally:
        consumer.close()
    return found
