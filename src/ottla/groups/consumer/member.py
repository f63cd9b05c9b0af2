"""A member of a consumer group."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import ClassVar
from uuid import UUID

from ottla.groups.consumer.records import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    CurrentTopicPartitions,
)
from ottla.groups.modern.member import Subscription
from ottla.groups.modern.reconciliation import NOTHING_OLDER, MemberState, ReconcilingMember
from ottla.groups.partitions import NOTHING, Assignment, TopicIdPartition, assignment_of, by_topic
from ottla.machine.record import RecordValue
from ottla.protocol.entities import entity


@entity
class ConsumerMember(ReconcilingMember[Assignment]):
    METADATA: ClassVar = ConsumerGroupMemberMetadataValue
    NOTHING: ClassVar = NOTHING

    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    classic: ClassicMemberMetadata | None = None  # While it uses the classic protocol.
    assigned: Assignment = NOTHING
    pending_revocation: Assignment = NOTHING

    @property
    def subscription(self) -> Subscription:
        return Subscription(self.subscribed_topic_names, self.subscribed_topic_regex or None)

    @property
    def uses_classic_protocol(self) -> bool:
        return self.classic is not None

    @staticmethod
    def exclusive(assigned: Assignment) -> Assignment:
        return assigned

    def assignment(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        return ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=self.state,
            assigned_partitions=self._to_record(self.assigned),
            partitions_pending_revocation=self._to_record(self.pending_revocation),
        )

    def _to_record(self, assignment: Assignment) -> tuple[CurrentTopicPartitions, ...]:
        return tuple(
            CurrentTopicPartitions(
                topic_id=topic_id,
                partitions=partitions,
                assignment_epochs=self._epochs(topic_id, partitions) if self.older_epochs else (),
            )
            for topic_id, partitions in by_topic(assignment).items()
        )

    def _epochs(self, topic_id: UUID, partitions: Iterable[int]) -> tuple[int, ...]:
        """Empty if all have the member's own epoch."""
        topic_partitions = (TopicIdPartition(topic_id, partition) for partition in partitions)
        epochs = tuple(
            self.older_epochs.get(topic_partition, self.epoch)
            for topic_partition in topic_partitions
        )
        return epochs if any(epoch != self.epoch for epoch in epochs) else ()

    def with_assignment(self, value: RecordValue) -> "ConsumerMember":
        assert isinstance(value, ConsumerGroupCurrentMemberAssignmentValue)
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState(value.state),
            assigned=_assignment(value.assigned_partitions),
            pending_revocation=_assignment(value.partitions_pending_revocation),
            older_epochs=_older_epochs(value),
        )


def _assignment(topics: Iterable[CurrentTopicPartitions]) -> Assignment:
    return assignment_of((topic.topic_id, topic.partitions) for topic in topics)


def _older_epochs(
    value: ConsumerGroupCurrentMemberAssignmentValue,
) -> Mapping[TopicIdPartition, int]:
    older = {
        TopicIdPartition(topic.topic_id, partition): epoch
        for topic in (*value.assigned_partitions, *value.partitions_pending_revocation)
        if topic.topic_id is not None
        for partition, epoch in zip(topic.partitions, topic.assignment_epochs or (), strict=False)
        if epoch != value.member_epoch
    }
    return older or NOTHING_OLDER
