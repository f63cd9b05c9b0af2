"""A consumer group (KIP-848): a partition has one owner at a time.

Empty        no members
Assigning    the target assignment is older than the group epoch
Reconciling  some member does not have its target yet
Stable       all members do
"""

from collections import Counter
from collections.abc import Iterable, MutableMapping
from typing import Self

from ottla.groups.consumer.member import ConsumerMember
from ottla.groups.consumer.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from ottla.groups.modern.draft import GroupDraft
from ottla.groups.modern.group import Families, ModernGroup
from ottla.groups.modern.member import Subscription
from ottla.groups.modern.overlay_mapping import Overlay
from ottla.groups.partitions import Assignment, TopicIdPartition
from ottla.machine.record import Record


class ConsumerGroup(ModernGroup[ConsumerMember, Assignment]):
    type_name = "consumer"
    protocol_type_name = "consumer"
    FAMILIES = Families(
        epoch=ConsumerGroupMetadataKey,
        epoch_value=ConsumerGroupMetadataValue,
        member=ConsumerGroupMemberMetadataKey,
        assignment_epoch=ConsumerGroupTargetAssignmentMetadataKey,
        target=ConsumerGroupTargetAssignmentMemberKey,
        current=ConsumerGroupCurrentMemberAssignmentKey,
    )

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.resolved: dict[str, ConsumerGroupRegularExpressionValue] = {}  # By expression.
        self.static_members: MutableMapping[str, str] = {}  # Instance id to member id.
        self._holders: MutableMapping[TopicIdPartition, str] = {}

    def drafted(self) -> Self:
        other = super().drafted()
        other.resolved = self.resolved.copy()
        other.static_members = Overlay(self.static_members)
        other._holders = Overlay(self._holders)
        return other

    def holder(self, partition: TopicIdPartition) -> str | None:
        """The member that has the partition, or has yet to revoke it."""
        return self._holders.get(partition)

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def preferred_assignor(self, default: str) -> str:
        """The assignor that most members ask for; the first by name among equals."""
        votes = Counter(
            member.server_assignor for member in self.members.values() if member.server_assignor
        )
        return min(votes, key=lambda name: (-votes[name], name)) if votes else default

    def topics_of(self, subscription: Subscription) -> frozenset[str]:
        """The topic names that members subscribe to, by name and by expression."""
        names = super().topics_of(subscription)
        resolved = self.resolved.get(subscription.regex or "")
        return names if resolved is None else names.union(resolved.topics)

    # Specific to consumer groups.

    def _more_records(self) -> Iterable[Record]:
        for expression, value in self.resolved.items():
            yield self.expression_record(expression, value)

    def _more_tombstones(self) -> Iterable[Record]:
        for expression in self.resolved:
            yield self.expression_record(expression, None)

    def expression_record(
        self, expression: str, value: ConsumerGroupRegularExpressionValue | None
    ) -> Record:
        key = ConsumerGroupRegularExpressionKey(
            group_id=self.group_id, regular_expression=expression
        )
        return Record(key, value)

    def _replay_more(self, record: Record) -> None:
        match record.key, record.value:
            case (
                ConsumerGroupRegularExpressionKey(regular_expression=expression),
                ConsumerGroupRegularExpressionValue() as value,
            ):
                self.resolved[expression] = value
            case ConsumerGroupRegularExpressionKey(regular_expression=expression), None:
                self.resolved.pop(expression, None)

    def _new_member(self, member_id: str) -> ConsumerMember:
        return ConsumerMember(member_id=member_id)

    def _on_added(self, member: ConsumerMember) -> None:
        super()._on_added(member)
        for partition in member.held:
            self._holders[partition] = member.member_id
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def _on_removed(self, member: ConsumerMember) -> None:
        """Leaves partitions and instances that another member has taken over."""
        super()._on_removed(member)
        for partition in member.held:
            if self._holders.get(partition) == member.member_id:
                del self._holders[partition]
        instance_id = member.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == member.member_id:
            del self.static_members[instance_id]


Draft = GroupDraft[ConsumerGroup]
