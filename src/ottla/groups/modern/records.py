"""Record value layouts shared by the groups that the coordinator assigns."""

import uuid
from dataclasses import field
from typing import Self

from ottla.groups.partitions import Assignment, assignment_of, by_topic
from ottla.machine.record import ValueLayout
from ottla.protocol.entities import entity, wire


@entity
class PartitionMetadata(ValueLayout):
    partition: int = field(metadata=wire("int32"))
    racks: tuple[str, ...] = field(metadata=wire("string"))


@entity
class TopicMetadata(ValueLayout):
    topic_id: uuid.UUID | None = field(metadata=wire("uuid"))
    topic_name: str = field(metadata=wire("string"))
    num_partitions: int = field(metadata=wire("int32"))
    partition_metadata: tuple[PartitionMetadata, ...]


@entity
class PartitionMetadataValue(ValueLayout):
    topics: tuple[TopicMetadata, ...]


@entity
class EpochValue(ValueLayout):
    epoch: int = field(metadata=wire("int32"))
    # Of the subscribed topics and their partition counts when the epoch began (KIP-1101).
    metadata_hash: int = field(metadata=wire("int64"), default=0)


@entity
class TargetAssignmentMetadataValue(ValueLayout):
    assignment_epoch: int = field(metadata=wire("int32"))
    assignment_timestamp: int = field(metadata=wire("int64", tag=0), default=0)  # KIP-1263.


@entity
class TopicPartitions(ValueLayout):
    topic_id: uuid.UUID | None = field(metadata=wire("uuid"))
    partitions: tuple[int, ...] = field(metadata=wire("int32"))


@entity
class TargetAssignmentMemberValue(ValueLayout):
    topic_partitions: tuple[TopicPartitions, ...]

    @classmethod
    def of(cls, target: Assignment) -> Self:
        return cls(topic_partitions=to_topic_partitions(target))

    @property
    def target(self) -> Assignment:
        return from_topic_partitions(self.topic_partitions)


def to_topic_partitions(assignment: Assignment) -> tuple[TopicPartitions, ...]:
    return tuple(
        TopicPartitions(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in by_topic(assignment).items()
    )


def from_topic_partitions(topics: tuple[TopicPartitions, ...]) -> Assignment:
    return assignment_of((topic.topic_id, topic.partitions) for topic in topics)
