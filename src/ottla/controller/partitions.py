"""New partitions, and what happens to partitions when a broker comes or goes.

The leader is the first replica, in preferred order, that is active and in sync. Without one the
partition has no leader and keeps its in-sync set, so that only a replica that has everything can
lead it next; unclean election is not done.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from uuid import UUID

from kio.schema.types import BrokerId
from kio.static.primitive import i32

from ottla.controller.image import MetadataImage
from ottla.controller.placement import Candidate
from ottla.controller.records import (
    LEADER_UNCHANGED,
    NO_LEADER,
    PartitionChangeRecord,
    PartitionRecord,
)

PARTITIONS_PER_REQUEST_MAX = 10_000


def candidates(image: MetadataImage) -> list[Candidate]:
    return [
        Candidate(
            broker.broker_id, broker.rack, not broker.fenced and not broker.in_controlled_shutdown
        )
        for _, broker in sorted(image.brokers.items())
    ]


def new_partitions(
    topic_id: UUID,
    assignments: Iterable[tuple[BrokerId, ...]],
    brokers: Sequence[Candidate],
    first_index: int = 0,
) -> Iterator[PartitionRecord]:
    active = {broker.broker_id for broker in brokers if broker.active}
    for index, replicas in enumerate(assignments, first_index):
        isr = tuple(replica for replica in replicas if replica in active)
        yield PartitionRecord(
            partition_id=i32(index),
            topic_id=topic_id,
            replicas=replicas,
            isr=isr,
            leader=isr[0] if isr else NO_LEADER,
        )


def elect(
    partition: PartitionRecord, isr: Sequence[int], active: Callable[[int], bool]
) -> BrokerId:
    for replica in partition.replicas:
        if replica in isr and active(replica):
            return replica
    return NO_LEADER


def changes_without_broker(image: MetadataImage, broker_id: int) -> Iterator[PartitionChangeRecord]:
    """A broker is gone: it leads nothing, and is in sync only where no other replica is."""
    active = {broker.broker_id for broker in image.active_brokers()} - {broker_id}
    for partition in _partitions(image):
        if broker_id not in partition.isr and partition.leader != broker_id:
            continue
        isr = tuple(replica for replica in partition.isr if replica != broker_id) or partition.isr
        leader = LEADER_UNCHANGED
        if partition.leader == broker_id:
            leader = elect(partition, isr, active.__contains__)
        if isr != partition.isr or leader != LEADER_UNCHANGED:
            yield PartitionChangeRecord(
                partition_id=partition.partition_id,
                topic_id=partition.topic_id,
                isr=None if isr == partition.isr else isr,
                leader=leader,
            )


def changes_with_broker(
    image: MetadataImage, broker_id: BrokerId
) -> Iterator[PartitionChangeRecord]:
    """A broker is back: it leads the partitions that wait for it."""
    for partition in _partitions(image):
        if partition.leader == NO_LEADER and broker_id in partition.isr:
            yield PartitionChangeRecord(
                partition_id=partition.partition_id, topic_id=partition.topic_id, leader=broker_id
            )


def leads_any(image: MetadataImage, broker_id: int) -> bool:
    return any(partition.leader == broker_id for partition in _partitions(image))


def _partitions(image: MetadataImage) -> Iterator[PartitionRecord]:
    for topic in image.topics.values():
        yield from topic.partitions.values()
