"""The log directory of each replica on its broker (KIP-858).

A broker with several directories reports where it has put each replica. When one of them fails, the
replicas there lose leadership, and the others carry on. A broker with one directory need not
report: it fails along with the directory.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from kio.schema.types import BrokerId

from ottla.controller.image import MetadataImage
from ottla.controller.records import PartitionRecord, RegisterBrokerRecord

# Kafka's values.
UNASSIGNED: Final = UUID(int=1)
LOST: Final = UUID(int=2)  # In no directory, because its log is damaged.

Directories = tuple[UUID | None, ...]


def directory_of(partition: PartitionRecord, broker_id: int) -> UUID | None:
    """None if the broker has not reported it."""
    for replica, directory in zip(partition.replicas, partition.directories, strict=False):
        if replica == broker_id:
            return None if directory == UNASSIGNED else directory
    return None


def is_online(broker: RegisterBrokerRecord, directory: UUID | None) -> bool:
    """A directory that was never reported counts as online."""
    return directory is None or directory in broker.log_dirs


def directories_for(
    replicas: Sequence[BrokerId], partition: PartitionRecord, moved: tuple[int, UUID | None]
) -> Directories:
    """For these replicas, with one of them `moved`; empty if no broker has reported any."""
    found = tuple(
        moved[1] if replica == moved[0] else directory_of(partition, replica)
        for replica in replicas
    )
    if not any(found):
        return ()
    return tuple(UNASSIGNED if directory is None else directory for directory in found)


def names_directories(image: MetadataImage) -> bool:
    """Whether any broker has reported where its replicas are."""
    topics = image.topics.values()
    return any(partition.directories for topic in topics for partition in topic.partitions.values())
