"""A group whose partitions the coordinator assigns: replicated state that only `replay` changes.

Two epochs show the group's progress. The group epoch increases with every change of members,
subscriptions or subscribed topics; the assignment epoch follows once the target assignment has been
made for it. Each member's epoch follows the assignment epoch as it adopts its target.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, MutableMapping
from typing import ClassVar, Generic, NamedTuple, Self, TypeVar

from ottla.groups.modern.member import ModernMember, Subscription
from ottla.groups.modern.overlay_mapping import Overlay
from ottla.groups.modern.records import (
    EpochValue,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
    from_topic_partitions,
    to_topic_partitions,
)
from ottla.groups.partitions import NOTHING, Assignment
from ottla.groups.record import GroupKey, MemberKey, Record, RecordValue
from ottla.protocol.errors import ApiError, ErrorCode

M = TypeVar("M", bound=ModernMember)

# Of an empty target that was never written. The first member of a group advances it.
FIRST_EPOCH = 1


class Families(NamedTuple):
    """The record families of one type of group, by their keys."""

    epoch: type[GroupKey]
    epoch_value: type[EpochValue]
    member: type[MemberKey]
    assignment_epoch: type[GroupKey]
    target: type[MemberKey]
    current: type[MemberKey]


class ModernGroup(ABC, Generic[M]):
    type_name: ClassVar[str]
    protocol_type_name: ClassVar[str]
    FAMILIES: ClassVar[Families]

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH  # Invariant: assignment_epoch <= epoch.
        self.assignment_timestamp_ms = 0  # When the target assignment was made.
        self.members: MutableMapping[str, M] = {}
        self.targets: MutableMapping[str, Assignment] = {}
        self.target_partition_count = 0  # In all targets.
        self._subscriptions: Counter[Subscription] = Counter()  # How many members have each.

    def drafted(self) -> Self:
        """A copy for an operation, layered over this one, which must not change meanwhile.

        Members and assignments are immutable.
        """
        other = self.__class__(self.group_id)
        other.epoch = self.epoch
        other.metadata_hash = self.metadata_hash
        other.assignment_epoch = self.assignment_epoch
        other.assignment_timestamp_ms = self.assignment_timestamp_ms
        other.members = Overlay(self.members)
        other.targets = Overlay(self.targets)
        other.target_partition_count = self.target_partition_count
        other._subscriptions = self._subscriptions.copy()
        return other

    # State.

    @property
    def is_empty(self) -> bool:
        return not self.members

    def member(self, member_id: str) -> M:
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(
                ErrorCode.unknown_member_id,
                f"Member {member_id} is not a member of group {self.group_id}.",
            )
        return member

    def target(self, member_id: str) -> Assignment:
        return self.targets.get(member_id, NOTHING)

    @property
    def subscriptions(self) -> Collection[Subscription]:
        """The distinct ones. Members are many, but most of them want the same."""
        return self._subscriptions.keys()

    def topics_of(self, subscription: Subscription) -> frozenset[str]:
        return frozenset(subscription.names)

    def subscribed_topics(self) -> frozenset[str]:
        return frozenset().union(*map(self.topics_of, self.subscriptions))

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed_topics()

    def validate_delete(self) -> None:
        if not self.is_empty:
            raise ApiError(ErrorCode.non_empty_group, "the group has members")

    def offset_retention_start_ms(self, commit_timestamp_ms: int) -> int | None:
        return commit_timestamp_ms

    # Records.

    def epoch_record(self, epoch: int, metadata_hash: int) -> Record:
        value = self.FAMILIES.epoch_value(epoch=epoch, metadata_hash=metadata_hash)
        return Record(self.FAMILIES.epoch(group_id=self.group_id), value)

    def assignment_epoch_record(self, epoch: int, timestamp_ms: int) -> Record:
        return Record(
            self.FAMILIES.assignment_epoch(group_id=self.group_id),
            TargetAssignmentMetadataValue(
                assignment_epoch=epoch, assignment_timestamp=timestamp_ms
            ),
        )

    def target_record(self, member_id: str, target: Assignment) -> Record:
        return Record(
            self.FAMILIES.target(group_id=self.group_id, member_id=member_id),
            TargetAssignmentMemberValue(topic_partitions=to_topic_partitions(target)),
        )

    def member_tombstones(self, member_id: str) -> Iterable[Record]:
        families = self.FAMILIES
        for family in (families.current, families.target, families.member):
            yield Record(family(group_id=self.group_id, member_id=member_id), None)

    def tombstones(self) -> Iterable[Record]:
        """The records that remove the group."""
        for member_id in self.members:
            yield from self.member_tombstones(member_id)
        yield from self._more_tombstones()
        yield Record(self.FAMILIES.assignment_epoch(group_id=self.group_id), None)
        yield Record(self.FAMILIES.epoch(group_id=self.group_id), None)

    def snapshot(self) -> Iterable[Record]:
        for member in self.members.values():
            yield member.metadata_record(self.group_id)
        yield from self._more_records()
        yield self.epoch_record(self.epoch, self.metadata_hash)
        for member_id, target in self.targets.items():
            yield self.target_record(member_id, target)
        yield self.assignment_epoch_record(self.assignment_epoch, self.assignment_timestamp_ms)
        for member in self.members.values():
            yield member.assignment_record(self.group_id)

    @abstractmethod
    def _more_records(self) -> Iterable[Record]:
        """The records that only this type of group has."""

    @abstractmethod
    def _more_tombstones(self) -> Iterable[Record]: ...

    # Replay.

    def replay(self, record: Record) -> None:
        key, value = record.key, record.value
        families = self.FAMILIES
        if isinstance(key, families.member):
            self._replay_member(key.member_id, value)
        elif isinstance(key, families.current):
            self._replay_current(key.member_id, value)
        elif isinstance(key, families.target):
            assert isinstance(value, TargetAssignmentMemberValue | None)
            self._replay_target(key.member_id, value)
        elif isinstance(key, families.epoch):
            assert isinstance(value, EpochValue | None)
            self.epoch = value.epoch if value else FIRST_EPOCH
            self.metadata_hash = value.metadata_hash if value else 0
        elif isinstance(key, families.assignment_epoch):
            assert isinstance(value, TargetAssignmentMetadataValue | None)
            self.assignment_epoch = value.assignment_epoch if value else FIRST_EPOCH
            self.assignment_timestamp_ms = value.assignment_timestamp if value else 0
        else:
            self._replay_more(record)

    @abstractmethod
    def _replay_more(self, record: Record) -> None: ...

    @abstractmethod
    def _new_member(self, member_id: str) -> M: ...

    def _replay_target(self, member_id: str, value: TargetAssignmentMemberValue | None) -> None:
        self.target_partition_count -= len(self.target(member_id))
        if value is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = target = from_topic_partitions(value.topic_partitions)
            self.target_partition_count += len(target)

    def _replay_member(self, member_id: str, value: RecordValue | None) -> None:
        member = None
        if value is not None:
            member = self._known_or_new(member_id).with_metadata(value)
        self._put(member_id, member)

    def _replay_current(self, member_id: str, value: RecordValue | None) -> None:
        """Compaction may leave an assignment before its member's record, which follows."""
        if value is not None or member_id in self.members:
            self._put(member_id, self._known_or_new(member_id).with_assignment(value))

    def _known_or_new(self, member_id: str) -> M:
        return self.members.get(member_id) or self._new_member(member_id)

    def _put(self, member_id: str, member: M | None) -> None:
        old = self.members.pop(member_id, None) if member is None else self.members.get(member_id)
        if old is not None:
            self._on_removed(old)
        if member is not None:
            self.members[member_id] = member
            self._on_added(member)

    def _on_added(self, member: M) -> None:
        self._subscriptions[member.subscription] += 1

    def _on_removed(self, member: M) -> None:
        """The member leaves the group, or is replaced by its next state."""
        subscription = member.subscription
        self._subscriptions[subscription] -= 1
        if not self._subscriptions[subscription]:
            del self._subscriptions[subscription]


def epoch_refusal(kind: str, epoch: int, known_epoch: int) -> str:
    size = "greater" if epoch > known_epoch else "smaller"
    return (
        f"The {kind} group member has a {size} member epoch ({epoch}) than the one known by the"
        f" group coordinator ({known_epoch}). The member must abandon all its partitions and"
        " rejoin."
    )
