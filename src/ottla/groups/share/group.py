"""A share group: replicated state that only `replay` changes.

The group epoch grows with every change of members, subscriptions, subscribed topics or initialized
partitions; the target assignment is made for it at once, and each member follows with its next
heartbeat. Nothing has to be given up first: a partition may have many members.

    Empty   no members
    Stable  otherwise

Only partitions whose state the share coordinator has (`initialized`) are assigned.
"""

from collections.abc import Iterable

from ottla.groups.consumer.member import from_topic_partitions, to_topic_partitions
from ottla.groups.partitions import NOTHING, Assignment, assignment_of
from ottla.groups.record import Record
from ottla.groups.share.member import ShareMember
from ottla.groups.share.records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)
from ottla.protocol.errors import ApiError, ErrorCode


class ShareGroup:
    type_name = "Share"
    protocol_type_name = "share"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 0
        self.metadata_hash = 0
        self.assignment_epoch = 0  # Invariant: assignment_epoch <= epoch.
        self.members: dict[str, ShareMember] = {}
        self.targets: dict[str, Assignment] = {}
        self.state_partitions = ShareGroupStatePartitionMetadataValue()
        self.initialized: Assignment = NOTHING

    def copy(self) -> "ShareGroup":
        """For an operation to work on; members and assignments are immutable."""
        other = ShareGroup(self.group_id)
        other.epoch = self.epoch
        other.metadata_hash = self.metadata_hash
        other.assignment_epoch = self.assignment_epoch
        other.members = dict(self.members)
        other.targets = dict(self.targets)
        other.state_partitions = self.state_partitions
        other.initialized = self.initialized
        return other

    # What the group is.

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def state_name(self) -> str:
        return "Stable" if self.members else "Empty"

    def member(self, member_id: str) -> ShareMember:
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(
                ErrorCode.unknown_member_id,
                f"{member_id or 'the caller'} is not a member of group {self.group_id}",
            )
        return member

    def target(self, member_id: str) -> Assignment:
        return self.targets.get(member_id, NOTHING)

    def subscribed_topics(self) -> frozenset[str]:
        return frozenset().union(
            *(member.subscribed_topic_names for member in self.members.values())
        )

    # What may be asked of it. It has no committed offsets, but its state at the share coordinator.

    def validate_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation: int,
        *,
        transactional: bool,
        api_version: int,
    ) -> None:
        del member_id, group_instance_id, generation, transactional, api_version
        raise self._no_offsets()

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        del member_id, member_epoch
        raise self._no_offsets()

    def validate_offset_delete(self) -> None:
        raise self._no_offsets()

    def _no_offsets(self) -> ApiError:
        return ApiError(
            ErrorCode.group_id_not_found,
            f"{self.group_id} is a share group; it has no committed offsets",
        )

    def validate_delete(self) -> None:
        if not self.is_empty:
            raise ApiError(ErrorCode.non_empty_group)

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed_topics()

    def offset_retention_start_ms(self, commit_timestamp_ms: int) -> int | None:
        return commit_timestamp_ms

    # As records.

    def epoch_record(self, epoch: int, metadata_hash: int) -> Record:
        return Record(
            ShareGroupMetadataKey(group_id=self.group_id),
            ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
        )

    def assignment_epoch_record(self, epoch: int) -> Record:
        return Record(
            ShareGroupTargetAssignmentMetadataKey(group_id=self.group_id),
            ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch),
        )

    def target_record(self, member_id: str, target: Assignment) -> Record:
        return Record(
            ShareGroupTargetAssignmentMemberKey(group_id=self.group_id, member_id=member_id),
            ShareGroupTargetAssignmentMemberValue(topic_partitions=to_topic_partitions(target)),
        )

    def state_record(self, value: ShareGroupStatePartitionMetadataValue) -> Record:
        return Record(ShareGroupStatePartitionMetadataKey(group_id=self.group_id), value)

    def member_tombstones(self, member_id: str) -> Iterable[Record]:
        group_id = self.group_id
        key = ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
        yield Record(key, None)
        yield Record(
            ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None
        )
        yield Record(ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)

    def tombstones(self) -> Iterable[Record]:
        group_id = self.group_id
        for member_id in self.members:
            yield from self.member_tombstones(member_id)
        yield Record(ShareGroupTargetAssignmentMetadataKey(group_id=group_id), None)
        yield Record(ShareGroupStatePartitionMetadataKey(group_id=group_id), None)
        yield Record(ShareGroupMetadataKey(group_id=group_id), None)

    def snapshot(self) -> Iterable[Record]:
        for member in self.members.values():
            yield member.metadata_record(self.group_id)
        yield self.epoch_record(self.epoch, self.metadata_hash)
        for member_id, target in self.targets.items():
            yield self.target_record(member_id, target)
        yield self.assignment_epoch_record(self.assignment_epoch)
        yield self.state_record(self.state_partitions)
        for member in self.members.values():
            yield member.assignment_record(self.group_id)

    # Replay.

    def replay(self, record: Record) -> None:
        match record.key, record.value:
            case ShareGroupMemberMetadataKey(member_id=member_id), value:
                assert isinstance(value, ShareGroupMemberMetadataValue | None)
                self._replay_member(member_id, value)
            case ShareGroupCurrentMemberAssignmentKey(member_id=member_id), value:
                assert isinstance(value, ShareGroupCurrentMemberAssignmentValue | None)
                self._replay_current(member_id, value)
            case (
                ShareGroupTargetAssignmentMemberKey(member_id=member_id),
                ShareGroupTargetAssignmentMemberValue() as value,
            ):
                self.targets[member_id] = from_topic_partitions(value.topic_partitions)
            case ShareGroupTargetAssignmentMemberKey(member_id=member_id), None:
                self.targets.pop(member_id, None)
            case ShareGroupMetadataKey(), value:
                assert isinstance(value, ShareGroupMetadataValue | None)
                self.epoch = value.epoch if value else 0
                self.metadata_hash = value.metadata_hash if value else 0
            case ShareGroupTargetAssignmentMetadataKey(), value:
                assert isinstance(value, ShareGroupTargetAssignmentMetadataValue | None)
                self.assignment_epoch = value.assignment_epoch if value else 0
            case ShareGroupStatePartitionMetadataKey(), value:
                assert isinstance(value, ShareGroupStatePartitionMetadataValue | None)
                self.state_partitions = value or ShareGroupStatePartitionMetadataValue()
                self.initialized = assignment_of(
                    (topic.topic_id, topic.partitions)
                    for topic in self.state_partitions.initialized_topics
                )

    def _replay_member(self, member_id: str, value: ShareGroupMemberMetadataValue | None) -> None:
        if value is None:
            self.members.pop(member_id, None)
        else:
            old = self.members.get(member_id) or ShareMember(member_id=member_id)
            self.members[member_id] = old.with_metadata(value)

    def _replay_current(
        self, member_id: str, value: ShareGroupCurrentMemberAssignmentValue | None
    ) -> None:
        """Compaction may leave an assignment before its member; the member's record follows."""
        old = self.members.get(member_id)
        if old is None and value is None:
            return
        member = old or ShareMember(member_id=member_id)
        self.members[member_id] = member.with_assignment(value)
