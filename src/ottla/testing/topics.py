"""Topics and their records; imported when a test asks for them.

It talks to any broker over the network as a client does, so it serves an embedded broker, a cluster
and one that somebody else has started.
"""

from collections.abc import Iterable, Mapping

from ottla.client.messages import Message
from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.fetching import Fetcher
from ottla.client.wire.offsets import EARLIEST, LATEST, Isolation, list_offsets
from ottla.client.wire.topics import ensure_topic
from ottla.records.builder import Record
from ottla.records.decoder import iterate_records
from ottla.records.isolation import scan_batches


def create_topic(
    cluster: Cluster,
    name: str,
    partitions: int,
    config: Mapping[str, str] | None,
    replication_factor: int,
) -> None:
    """Returns when every partition has a leader. One that is there stays as it is."""
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
    """Those that are there now, by partition and offset; of a missing topic none."""
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
    offset = list_offsets(cluster, {topic_partition: EARLIEST}, isolation)[topic_partition] or 0
    end = list_offsets(cluster, {topic_partition: LATEST}, isolation)[topic_partition] or 0
    messages: list[Message] = []
    with Fetcher(cluster, topic_partition, isolation) as fetcher:
        while offset < end:
            fetched = fetcher.fetch(offset)
            scan = scan_batches(fetched.records, offset, end, fetched.aborted)
            for position, _ in scan.batches:
                messages += [
                    _message(topic_partition, record)
                    for record in iterate_records(fetched.records, position)
                    if offset <= record.offset < end
                ]
            offset = scan.next_offset
    return messages


def _message(topic_partition: TopicPartition, record: Record) -> Message:
    offset, timestamp, key, value, headers = record
    return Message.of(*topic_partition, offset, timestamp, key, value, list(headers))
