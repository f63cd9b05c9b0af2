"""New partitions, and the brokers on which they can be placed."""

from collections.abc import Iterable, Iterator, Sequence
from uuid import UUID

from kio.schema.types import BrokerId
from kio.static.primitive import i32

from ottla.controller.config import ALL_LOG_DIRS, CORDONED_LOG_DIRS
from ottla.controller.image import MetadataImage
from ottla.controller.placement import Candidate
from ottla.controller.records import NO_LEADER, PartitionRecord, RegisterBrokerRecord

PARTITIONS_PER_REQUEST_MAX = 10_000


def candidates(image: MetadataImage) -> list[Candidate]:
    return [
        Candidate(
            broker.broker_id,
            broker.rack,
            not broker.fenced and not broker.in_controlled_shutdown,
            is_cordoned(image, broker),
        )
        for _, broker in sorted(image.brokers.items())
    ]


def open_candidates(image: MetadataImage) -> list[Candidate]:
    """The brokers that can receive new replicas now."""
    return [
        candidate for candidate in candidates(image) if candidate.active and not candidate.cordoned
    ]


def is_cordoned(image: MetadataImage, broker: RegisterBrokerRecord) -> bool:
    """Paths mean nothing here: cordoned means that there are as many of them as directories."""
    text = image.broker_configs(broker.broker_id).get(CORDONED_LOG_DIRS.name)
    if not text:
        return False
    paths = CORDONED_LOG_DIRS.parse(text)
    return ALL_LOG_DIRS in paths or len(set(paths)) >= max(len(broker.log_dirs), 1)


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
