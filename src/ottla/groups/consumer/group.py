"""A consumer group: replicated state that only `replay` changes.

Two epochs say how far the group has come. The group epoch grows with every change of members,
subscriptions or subscribed topics; the assignment epoch follows when the target assignment has been
made for it. Each member's epoch follows the assignment epoch as it takes over its target.

    Empty        no members
    Assigning    the target assignment is older than the group epoch
    Reconciling  some member does not have its target yet
    Stable       all members do
"""

from collections import Counter
from collections.abc import Iterable

from ottla.groups.consumer.member import (
    ConsumerMember,
    from_topic_partitions,
    to_topic_partitions,
)
from ottla.groups.consumer.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from ottla.groups.partitions import NOTHING, Assignment, TopicIdPartition
from ottla.groups.record import Record
from ottla.protocol.errors import ApiError, ErrorCode

_MEMBER_EPOCH_SINCE = 9  # Of OffsetCommit.


class ConsumerGroup:
    type_name = "Consumer"
    protocol_type_name = "consumer"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 0
        self.metadata_hash = 0
        self.assignment_epoch = 0  # Invariant: assignment_epoch <= epoch.
        self.members: dict[str, ConsumerMember] = {}
        self.targets: dict[str, Assignment] = {}
        self.resolved: dict[str, ConsumerGroupRegularExpressionValue] = {}  # By expression.
        self.static_members: dict[str, str] = {}  # Instance id to member id.
        self._holders: dict[TopicIdPartition, str] = {}

    def copy(self) -> "ConsumerGroup":
        """For an operation to work on; members and assignments are immutable."""
        other = ConsumerGroup(self.group_id)
        other.epoch = self.epoch
        other.metadata_hash = self.metadata_hash
        other.assignment_epoch = self.assignment_epoch
        other.members = dict(self.members)
        other.targets = dict(self.targets)
        other.resolved = dict(self.resolved)
        other.static_members = dict(self.static_members)
        other._holders = dict(self._holders)
        return other

    # What the group is.

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        reconciled = all(
            member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()
        )
        return "Stable" if reconciled else "Reconciling"

    def holder(self, partition: TopicIdPartition) -> str | None:
        """The member that has the partition, or has yet to give it up."""
        return self._holders.get(partition)

    def member(self, member_id: str) -> ConsumerMember:
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(
                ErrorCode.unknown_member_id,
                f"{member_id or 'the caller'} is not a member of group {self.group_id}",
            )
        return member

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def target(self, member_id: str) -> Assignment:
        return self.targets.get(member_id, NOTHING)

    def preferred_assignor(self, default: str) -> str:
        """The one that most members ask for; the first by name among equals."""
        votes = Counter(
            member.server_assignor for member in self.members.values() if member.server_assignor
        )
        return min(votes, key=lambda name: (-votes[name], name)) if votes else default

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """The names that the member subscribes to, one by one and by its expression."""
        names = frozenset(member.subscribed_topic_names)
        resolved = self.resolved.get(member.subscribed_topic_regex or "")
        return names if resolved is None else names.union(resolved.topics)

    def subscribed_topics(self) -> frozenset[str]:
        return frozenset().union(*map(self.topics_of, self.members.values()))

    # What may be asked of it.

    def validate_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,  # noqa: ARG002
        generation: int,
        *,
        transactional: bool,
        api_version: int,
    ) -> None:
        if generation < 0 and self.is_empty:
            return
        member = self.member(member_id)
        old_request = not transactional and api_version < _MEMBER_EPOCH_SINCE
        if old_request and not member.uses_classic_protocol:
            raise ApiError(
                ErrorCode.unsupported_version,
                f"members of consumer groups use OffsetCommit v{_MEMBER_EPOCH_SINCE} or newer",
            )
        self._validate_epoch(member, generation)

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        self._validate_epoch(self.member(member_id or ""), member_epoch)

    def _validate_epoch(self, member: ConsumerMember, epoch: int) -> None:
        if epoch != member.epoch:
            classic = member.uses_classic_protocol
            raise ApiError(
                ErrorCode.illegal_generation if classic else ErrorCode.stale_member_epoch,
                f"the member's epoch is {member.epoch}, not {epoch}",
            )

    def validate_offset_delete(self) -> None:
        """Offsets of topics that nobody subscribes to may go."""

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
            ConsumerGroupMetadataKey(group_id=self.group_id),
            ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
        )

    def assignment_epoch_record(self, epoch: int) -> Record:
        return Record(
            ConsumerGroupTargetAssignmentMetadataKey(group_id=self.group_id),
            ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch),
        )

    def target_record(self, member_id: str, target: Assignment) -> Record:
        return Record(
            ConsumerGroupTargetAssignmentMemberKey(group_id=self.group_id, member_id=member_id),
            ConsumerGroupTargetAssignmentMemberValue(topic_partitions=to_topic_partitions(target)),
        )

    def member_tombstones(self, member_id: str) -> Iterable[Record]:
        group_id = self.group_id
        key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
        yield Record(key, None)
        yield Record(
            ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None
        )
        yield Record(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)

    def tombstones(self) -> Iterable[Record]:
        group_id = self.group_id
        for member_id in self.members:
            yield from self.member_tombstones(member_id)
        for expression in self.resolved:
            key = ConsumerGroupRegularExpressionKey(
                group_id=group_id, regular_expression=expression
            )
            yield Record(key, None)
        yield Record(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None)
        yield Record(ConsumerGroupMetadataKey(group_id=group_id), None)

    def snapshot(self) -> Iterable[Record]:
        for member in self.members.values():
            yield member.metadata_record(self.group_id)
        for expression, value in self.resolved.items():
            key = ConsumerGroupRegularExpressionKey(
                group_id=self.group_id, regular_expression=expression
            )
            yield Record(key, value)
        yield self.epoch_record(self.epoch, self.metadata_hash)
        for member_id, target in self.targets.items():
            yield self.target_record(member_id, target)
        yield self.assignment_epoch_record(self.assignment_epoch)
        for member in self.members.values():
            yield member.assignment_record(self.group_id)

    # Replay.

    def replay(self, record: Record) -> None:
        match record.key, record.value:
            case ConsumerGroupMemberMetadataKey(member_id=member_id), value:
                assert isinstance(value, ConsumerGroupMemberMetadataValue | None)
                self._replay_member(member_id, value)
            case ConsumerGroupCurrentMemberAssignmentKey(member_id=member_id), value:
                assert isinstance(value, ConsumerGroupCurrentMemberAssignmentValue | None)
                self._replay_current(member_id, value)
            case (
                ConsumerGroupTargetAssignmentMemberKey(member_id=member_id),
                ConsumerGroupTargetAssignmentMemberValue() as value,
            ):
                self.targets[member_id] = from_topic_partitions(value.topic_partitions)
            case ConsumerGroupTargetAssignmentMemberKey(member_id=member_id), None:
                self.targets.pop(member_id, None)
            case ConsumerGroupMetadataKey(), value:
                assert isinstance(value, ConsumerGroupMetadataValue | None)
                self.epoch = value.epoch if value else 0
                self.metadata_hash = value.metadata_hash if value else 0
            case ConsumerGroupTargetAssignmentMetadataKey(), value:
                assert isinstance(value, ConsumerGroupTargetAssignmentMetadataValue | None)
                self.assignment_epoch = value.assignment_epoch if value else 0
            case (
                ConsumerGroupRegularExpressionKey(regular_expression=expression),
                ConsumerGroupRegularExpressionValue() as value,
            ):
                self.resolved[expression] = value
            case ConsumerGroupRegularExpressionKey(regular_expression=expression), None:
                self.resolved.pop(expression, None)

    def _replay_member(
        self, member_id: str, value: ConsumerGroupMemberMetadataValue | None
    ) -> None:
        old = self.members.get(member_id)
        if value is None:
            self._put(member_id, None)
        else:
            self._put(member_id, (old or ConsumerMember(member_id=member_id)).with_metadata(value))

    def _replay_current(
        self, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue | None
    ) -> None:
        """Compaction may leave an assignment before its member; the member's record follows."""
        old = self.members.get(member_id)
        if old is None and value is None:
            return
        member = old or ConsumerMember(member_id=member_id)
        self._put(member_id, member.with_assignment(value))

    def _put(self, member_id: str, member: ConsumerMember | None) -> None:
        old = self.members.pop(member_id, None) if member is None else self.members.get(member_id)
        if old is not None:
            self._release(old)
        if member is None:
            return
        self.members[member_id] = member
        for partition in member.held:
            self._holders[partition] = member_id
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member_id

    def _release(self, member: ConsumerMember) -> None:
        """Of a partition or instance that another one has taken over nothing is taken away."""
        for partition in member.held:
            if self._holders.get(partition) == member.member_id:
                del self._holders[partition]
        instance_id = member.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == member.member_id:
            del self.static_members[instance_id]
