"""A member of a consumer group."""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Final
from uuid import UUID

from ottla.groups.consumer.records import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    CurrentTopicPartitions,
)
from ottla.groups.modern.member import ModernMember, Subscription
from ottla.groups.partitions import NOTHING, Assignment, TopicIdPartition, assignment_of, by_topic
from ottla.groups.record import Record, RecordValue
from ottla.protocol.entities import entity

LEFT_TEMPORARILY_EPOCH = -2  # A static member that will return with the same instance id.

NOTHING_OLDER: Final[Mapping[TopicIdPartition, int]] = MappingProxyType({})


class MemberState(enum.IntEnum):
    """The values are those in the records.

    STABLE
        -> UNREVOKED_PARTITIONS   a new target takes partitions away
        -> UNRELEASED_PARTITIONS  a new target adds partitions that others still have
    UNREVOKED_PARTITIONS          the member must confirm that it revoked the partitions
        -> any of the three       it did; the newest target counts
    UNRELEASED_PARTITIONS         the member has its epoch, and gets more as others release them
        -> any of the three       by its next heartbeat
    """

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2


@entity
class ConsumerMember(ModernMember):
    subscribed_topic_regex: str | None = None
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicMemberMetadata | None = None  # While it uses the classic protocol.
    state: MemberState = MemberState.STABLE
    pending_revocation: Assignment = NOTHING
    # For partitions assigned before the member's epoch: the epoch in which it got each.
    older_epochs: Mapping[TopicIdPartition, int] = field(default_factory=lambda: NOTHING_OLDER)

    @property
    def subscription(self) -> Subscription:
        return Subscription(self.subscribed_topic_names, self.subscribed_topic_regex)

    @property
    def held(self) -> Assignment:
        """The partitions that no other member may have now."""
        return self.assigned | self.pending_revocation

    @property
    def uses_classic_protocol(self) -> bool:
        return self.classic is not None

    def has_had_since(self, epoch: int, partitions: Iterable[TopicIdPartition]) -> bool:
        """Whether the member has all of them, and had them in this epoch already (KIP-1251)."""
        held = self.held
        return all(
            each in held and self.older_epochs.get(each, self.epoch) <= epoch for each in partitions
        )

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch

    # Records.

    def metadata_record(self, group_id: str) -> Record:
        return Record(
            ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=self.member_id),
            self.metadata(),
        )

    def metadata(self) -> ConsumerGroupMemberMetadataValue:
        return ConsumerGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=self.subscribed_topic_names,
            subscribed_topic_regex=self.subscribed_topic_regex,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.server_assignor,
            classic_member_metadata=self.classic,
        )

    def with_metadata(self, value: RecordValue) -> "ConsumerMember":
        assert isinstance(value, ConsumerGroupMemberMetadataValue)
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=tuple(sorted(set(value.subscribed_topic_names))),
            subscribed_topic_regex=value.subscribed_topic_regex or None,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            classic=value.classic_member_metadata,
        )

    def assignment_record(self, group_id: str) -> Record:
        return Record(
            ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=self.member_id),
            ConsumerGroupCurrentMemberAssignmentValue(
                member_epoch=self.epoch,
                previous_member_epoch=self.previous_epoch,
                state=self.state,
                assigned_partitions=self._to_record(self.assigned),
                partitions_pending_revocation=self._to_record(self.pending_revocation),
            ),
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

    def with_assignment(self, value: RecordValue | None) -> "ConsumerMember":
        if value is None:
            return self.without_assignment()
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

    def without_assignment(self) -> "ConsumerMember":
        return replace(
            self,
            epoch=0,
            previous_epoch=-1,
            state=MemberState.STABLE,
            assigned=NOTHING,
            pending_revocation=NOTHING,
            older_epochs=NOTHING_OLDER,
        )


def _assignment(topics: Iterable[CurrentTopicPartitions]) -> Assignment:
    return assignment_of((topic.topic_id, topic.partitions) for topic in topics)


def _older_epochs(
    value: ConsumerGroupCurrentMemberAssignmentValue,
) -> Mapping[TopicIdPartition, int]:
    stamped = [
        topic
        for topic in (*value.assigned_partitions, *value.partitions_pending_revocation)
        if topic.assignment_epochs
    ]
    if not stamped:
        return NOTHING_OLDER
    return {
        TopicIdPartition(topic.topic_id, partition): epoch
        for topic in stamped
        if topic.topic_id is not None
        for partition, epoch in zip(topic.partitions, topic.assignment_epochs or (), strict=False)
        if epoch != value.member_epoch
    }
