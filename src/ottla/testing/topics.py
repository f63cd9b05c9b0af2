"""Topics and their records; imported on first use.

Talks to brokers over the network as any client does, so it works with an embedded broker, a
cluster and a broker started by somebody else.
"""

from collections.abc import Iterable, Mapping

from ottla.client.messages import Message
from ottla.client.wire import reading
from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.offsets import LATEST, Isolation, list_offsets
from ottla.client.wire.topics import ensure_topic
from ottla.records.builder import Record


def create_topic(
    cluster: Cluster,
    name: str,
    partitions: int,
    config: Mapping[str, str] | None,
    replication_factor: int,
) -> None:
    """Returns once every partition has a leader. An existing topic is left unchanged."""
    ensure_topic(
        cluster,
        name,
        partitions=partitions,
        config=config,
        replication_factor=replication_factor,
    )
    count = len(cluster.topics([name])[name].leaders)
    list_offsets(cluster, {TopicPartition(name, each): LATEST for each in range(count)})


def read_records(
    cluster: Cluster, topic: str, partition: int | None, *, committed: bool
) -> list[Message]:
    """The current records, by partition and offset; none if the topic does not exist."""
    return [
        message
        for topic_partition in _partitions(cluster, topic, partition)
        for message in _read(cluster, topic_partition, committed=committed)
    ]


def _partitions(cluster: Cluster, topic: str, partition: int | None) -> Iterable[TopicPartition]:
    found = cluster.topics([topic]).get(topic)
    if found is None:
        return []
    wanted = sorted(found.leaders) if partition is None else [partition]
    return [TopicPartition(topic, each) for each in wanted]


def _read(cluster: Cluster, topic_partition: TopicPartition, *, committed: bool) -> list[Message]:
    isolation = Isolation.READ_COMMITTED if committed else Isolation.READ_UNCOMMITTED
    end = list_offsets(cluster, {topic_partition: LATEST}, isolation)[topic_partition] or 0
    records = reading.read_records(cluster, topic_partition, 0, end, isolation)
    return [_message(topic_partition, record) for record in records]


def _message(topic_partition: TopicPartition, record: Record) -> Message:
    offset, timestamp, key, value, headers = record
    return Message.of(*topic_partition, offset, timestamp, key, value, list(headers))
