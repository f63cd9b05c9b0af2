"""What a test wants to know of topics: their records, and when they are there.

It talks to any broker over the network as a client does, so it serves an embedded broker, a cluster
and one that somebody else has started.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from ottla.client.messages import Message

if TYPE_CHECKING:
    from ottla.client.wire.cluster import Cluster, TopicPartition
    from ottla.records.builder import Record

PATIENCE_S = 60.0
_PAUSE_S = 0.02


class NotInTime(AssertionError):
    """What a test has waited for did not come."""


class Topics:
    def __init__(self, bootstrap_servers: Callable[[], str]) -> None:
        self._bootstrap_servers = bootstrap_servers

    def create(
        self, name: str, partitions: int, config: Mapping[str, str] | None, replication_factor: int
    ) -> None:
        """Returns when every partition has a leader. One that is there stays as it is."""
        from ottla.client.wire.cluster import TopicPartition
        from ottla.client.wire.offsets import LATEST, list_offsets
        from ottla.client.wire.topics import ensure_topic

        with self.cluster() as cluster:
            ensure_topic(
                cluster,
                name,
                partitions=partitions,
                config=config,
                replication_factor=replication_factor,
            )
            partitions = len(cluster.topics([name])[name].leaders)
            list_offsets(
                cluster, {TopicPartition(name, each): LATEST for each in range(partitions)}
            )

    def records(
        self, topic: str, partition: int | None = None, *, committed: bool = True
    ) -> list[Message]:
        """Those that are there now, by partition and offset; of a missing topic none.

        With `committed` those of open and aborted transactions are left out.
        """
        with self.cluster() as cluster:
            return [
                message
                for topic_partition in _partitions(cluster, topic, partition)
                for message in _read(cluster, topic_partition, committed=committed)
            ]

    def wait_for(
        self,
        topic: str,
        count: int,
        *,
        timeout_s: float = PATIENCE_S,
        where: Callable[[Message], bool] | None = None,
    ) -> list[Message]:
        """The records of the topic as soon as there are `count` of them (`where` holds).

        Raises NotInTime, an AssertionError.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            found = self.records(topic)
            if where is not None:
                found = [message for message in found if where(message)]
            if len(found) >= count:
                return found
            if time.monotonic() > deadline:
                raise NotInTime(
                    f"{topic} has {len(found)} of {count} records after {timeout_s:g} s"
                )
            time.sleep(_PAUSE_S)

    def cluster(self) -> "Cluster":
        from ottla.client.wire.cluster import Cluster

        return Cluster(self._bootstrap_servers(), client_id="ottla-testing")


def _partitions(
    cluster: "Cluster", topic: str, partition: int | None
) -> "Iterable[TopicPartition]":
    from ottla.client.wire.cluster import TopicPartition

    found = cluster.topics([topic]).get(topic)
    if found is None:
        return []
    wanted = sorted(found.leaders) if partition is None else [partition]
    return [TopicPartition(topic, each) for each in wanted]


def _read(
    cluster: "Cluster", topic_partition: "TopicPartition", *, committed: bool
) -> list[Message]:
    from ottla.client.wire.fetching import Fetcher
    from ottla.client.wire.offsets import EARLIEST, LATEST, Isolation, list_offsets
    from ottla.records.decoder import iterate_records
    from ottla.records.isolation import scan_batches

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


def _message(topic_partition: "TopicPartition", record: "Record") -> Message:
    offset, timestamp, key, value, headers = record
    return Message.of(*topic_partition, offset, timestamp, key, value, list(headers))
