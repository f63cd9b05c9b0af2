"""A group whose partitions the coordinator assigns: replicated state that only `replay` changes.

Two epochs show the group's progress. The group epoch increases with every change of members,
subscriptions or subscribed topics; the assignment epoch follows once the target assignment has been
made for it. Each member's epoch follows the assignment epoch as it adopts its target.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, MutableMapping, Sized
from copy import copy
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from ottla.groups.modern.member import ModernMember, Subscription
from ottla.groups.modern.overlay_mapping import Overlay
from ottla.groups.modern.records import (
    EpochValue,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
)
from ottla.groups.partitions import NOTHING
from ottla.groups.record_keys import GroupKey, MemberKey
from ottla.machine.record import Record, RecordValue
from ottla.protocol.errors import ApiError, ErrorCode

M = TypeVar("M", bound=ModernMember[Any])
A = TypeVar("A", bound=Sized)  # What is assigned: partitions, or the tasks of a streams group.

_MEMBER_EPOCH_SINCE = 9  # In OffsetCommit.

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
    target_value: type[Any] = TargetAssignmentMemberValue


class ModernGroup(ABC, Generic[M, A]):
    type_name: ClassVar[str]
    protocol_type_name: ClassVar[str]
    FAMILIES: ClassVar[Families]
    NOTHING: ClassVar[Any] = NOTHING  # An empty assignment.

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH  # Invariant: assignment_epoch <= epoch.
        self.assignment_timestamp_ms = 0  # When the target assignment was made.
        self.members: MutableMapping[str, M] = {}
        self.targets: MutableMapping[str, A] = {}
        self.target_size = 0  # How many partitions or copies of tasks all targets have.
        self._subscriptions: Counter[Subscription] = Counter()  # How many members have each.

    def drafted(self) -> Self:
        """A copy for an operation, layered over this one, which must not change meanwhile.

        Members, assignments and values of records are immutable.
        """
        other = copy(self)
        other.members = Overlay(self.members)
        other.targets = Overlay(self.targets)
        other._subscriptions = self._subscriptions.copy()
        return other

    # State.

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

    def member(self, member_id: str) -> M:
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(
                ErrorCode.unknown_member_id,
                f"Member {member_id} is not a member of group {self.group_id}.",
            )
        return member

    def target(self, member_id: str) -> A:
        nothing: A = self.NOTHING
        return self.targets.get(member_id, nothing)

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

    # Validation.

    def validate_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,  # noqa: ARG002
        generation: int,
        *,
        transactional: bool,
        api_version: int,
    ) -> None:
        if generation < 0 and (self.is_empty or (transactional and not member_id)):
            return
        member = self.member(member_id)
        old_request = not transactional and api_version < _MEMBER_EPOCH_SINCE
        if old_request and not member.uses_classic_protocol:
            raise ApiError(
                ErrorCode.unsupported_version,
                f"members of {self.type_name} groups use OffsetCommit v{_MEMBER_EPOCH_SINCE}"
                " or newer",
            )
        self._validate_epoch(member, generation)

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is not None or member_epoch >= 0:
            self._validate_epoch(self.member(member_id or ""), member_epoch)

    def _validate_epoch(self, member: M, epoch: int) -> None:
        if epoch != member.epoch:
            classic = member.uses_classic_protocol
            raise ApiError(
                ErrorCode.illegal_generation if classic else ErrorCode.stale_member_epoch,
                f"the member's epoch is {member.epoch}, not {epoch}",
            )

    def validate_offset_delete(self) -> None:
        """Offsets of topics without subscribers may be deleted."""

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

    def target_record(self, member_id: str, target: A) -> Record:
        key = self.FAMILIES.target(group_id=self.group_id, member_id=member_id)
        return Record(key, self.FAMILIES.target_value.of(target))

    def member_record(self, member: M) -> Record:
        key = self.FAMILIES.member(group_id=self.group_id, member_id=member.member_id)
        return Record(key, member.metadata())

    def assignment_record(self, member: M) -> Record:
        key = self.FAMILIES.current(group_id=self.group_id, member_id=member.member_id)
        return Record(key, member.assignment())

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
            yield self.member_record(member)
        yield from self._more_records()
        yield self.epoch_record(self.epoch, self.metadata_hash)
        for member_id, target in self.targets.items():
            yield self.target_record(member_id, target)
        yield self.assignment_epoch_record(self.assignment_epoch, self.assignment_timestamp_ms)
        for member in self.members.values():
            yield self.assignment_record(member)

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
            self._replay_target(key.member_id, value)
        elif isinstance(key, families.epoch):
            assert isinstance(value, EpochValue | None)
            self._replay_epoch(value or families.epoch_value(epoch=FIRST_EPOCH))
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

    def _replay_epoch(self, value: Any) -> None:
        self.epoch = value.epoch
        self.metadata_hash = value.metadata_hash

    def _replay_target(self, member_id: str, value: RecordValue | None) -> None:
        self.target_size -= len(self.target(member_id))
        if value is None:
            self.targets.pop(member_id, None)
        else:
            assert isinstance(value, self.FAMILIES.target_value)
            self.targets[member_id] = target = value.target
            self.target_size += len(target)

    def _replay_member(self, member_id: str, value: RecordValue | None) -> None:
        member = None
        if value is not None:
            member = self._known_or_new(member_id).with_metadata(value)
        self._put(member_id, member)

    def _replay_current(self, member_id: str, value: RecordValue | None) -> None:
        """Compaction may leave an assignment before its member's record, which follows."""
        if value is not None or member_id in self.members:
            member = self._known_or_new(member_id)
            moved = member.without_assignment() if value is None else member.with_assignment(value)
            self._put(member_id, moved)

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
