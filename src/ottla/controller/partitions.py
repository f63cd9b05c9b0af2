"""New partitions, and the brokers that they can be placed on."""

from collections.abc import Iterable, Iterator, Sequence
from uuid import UUID

from kio.schema.types import BrokerId
from kio.static.primitive import i32

from ottla.controller.image import MetadataImage
from ottla.controller.placement import Candidate
from ottla.controller.records import NO_LEADER, PartitionRecord

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
