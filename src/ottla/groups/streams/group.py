"""A streams group (KIP-1071): replicated state that only `replay` changes.

Empty        no members
NotReady     topics of the topology are missing or do not fit
Assigning    the target assignment is older than the group epoch
Reconciling  some member does not have its target yet
Stable       all members do

The epochs are those of every group that the coordinator assigns: see `modern.group`.
"""

from collections.abc import Iterable, Mapping, MutableMapping
from typing import Self

from ottla.groups.modern.group import FIRST_EPOCH
from ottla.groups.modern.overlay_mapping import Overlay
from ottla.groups.modern.records import TargetAssignmentMetadataValue
from ottla.groups.record import Record
from ottla.groups.streams.member import StreamsMember
from ottla.groups.streams.records import (
    KeyValue,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
    from_task_ids,
    to_task_ids,
)
from ottla.groups.streams.tasks import NOTHING, Task, TaskAssignment
from ottla.groups.streams.topology import required_topics
from ottla.protocol.errors import ApiError, ErrorCode

_MEMBER_EPOCH_SINCE = 9  # In OffsetCommit.


class StreamsGroup:
    type_name = "streams"
    protocol_type_name = "streams"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.validated_topology_epoch = -1
        self.assignment_configs: Mapping[str, str] = {}  # Of the last epoch.
        self.assignment_epoch = FIRST_EPOCH  # Invariant: assignment_epoch <= epoch.
        self.assignment_timestamp_ms = 0  # When the target assignment was made.
        self.topology: StreamsGroupTopologyValue | None = None
        self.members: MutableMapping[str, StreamsMember] = {}
        self.targets: MutableMapping[str, TaskAssignment] = {}

    def drafted(self) -> Self:
        """A copy for an operation, layered over this one, which must not change meanwhile.

        Members, assignments and topologies are immutable.
        """
        other = self.__class__(self.group_id)
        other.epoch = self.epoch
        other.metadata_hash = self.metadata_hash
        other.validated_topology_epoch = self.validated_topology_epoch
        other.assignment_configs = self.assignment_configs
        other.assignment_epoch = self.assignment_epoch
        other.assignment_timestamp_ms = self.assignment_timestamp_ms
        other.topology = self.topology
        other.members = Overlay(self.members)
        other.targets = Overlay(self.targets)
        return other

    # State.

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return "NotReady"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        reconciled = all(
            member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()
        )
        return "Stable" if reconciled else "Reconciling"

    @property
    def target_partition_count(self) -> int:
        """The number of task copies in the targets."""
        return sum(len(tasks) for target in self.targets.values() for tasks in target)

    def member(self, member_id: str) -> StreamsMember:
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(
                ErrorCode.unknown_member_id,
                f"Member {member_id} is not a member of group {self.group_id}.",
            )
        return member

    def target(self, member_id: str) -> TaskAssignment:
        return self.targets.get(member_id, NOTHING)

    def is_subscribed_to(self, topic: str) -> bool:
        """The topology of a group without members holds no offsets back."""
        if not self.members or self.topology is None:
            return False
        return topic in required_topics(self.topology)

    def tasks_reading(self, topic: str, partition: int) -> list[Task]:
        parts = self.topology.subtopologies if self.topology is not None else ()
        return [Task(part.subtopology_id, partition) for part in parts if topic in part.sources]

    # Validation.

    def validate_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation: int,
        *,
        transactional: bool,
        api_version: int,
    ) -> None:
        if generation < 0 and (self.is_empty or (transactional and not member_id)):
            return
        del group_instance_id
        member = self.member(member_id)
        if not transactional and api_version < _MEMBER_EPOCH_SINCE:
            raise ApiError(
                ErrorCode.unsupported_version,
                f"members of streams groups use OffsetCommit v{_MEMBER_EPOCH_SINCE} or newer",
            )
        self._validate_epoch(member, generation)

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is not None or member_epoch >= 0:
            self._validate_epoch(self.member(member_id or ""), member_epoch)

    def _validate_epoch(self, member: StreamsMember, epoch: int) -> None:
        if epoch != member.epoch:
            raise ApiError(
                ErrorCode.stale_member_epoch, f"the member's epoch is {member.epoch}, not {epoch}"
            )

    def validate_offset_delete(self) -> None:
        """Offsets of topics that the topology does not read may be deleted."""

    def validate_delete(self) -> None:
        if not self.is_empty:
            raise ApiError(ErrorCode.non_empty_group, "the group has members")

    def offset_retention_start_ms(self, commit_timestamp_ms: int) -> int | None:
        return commit_timestamp_ms

    # Records.

    def epoch_record(
        self,
        epoch: int,
        metadata_hash: int,
        validated_topology_epoch: int,
        configs: Mapping[str, str],
    ) -> Record:
        return Record(
            StreamsGroupMetadataKey(group_id=self.group_id),
            StreamsGroupMetadataValue(
                epoch=epoch,
                metadata_hash=metadata_hash,
                validated_topology_epoch=validated_topology_epoch,
                last_assignment_configs=tuple(
                    KeyValue(key=key, value=value) for key, value in sorted(configs.items())
                ),
            ),
        )

    def topology_record(self, topology: StreamsGroupTopologyValue) -> Record:
        return Record(StreamsGroupTopologyKey(group_id=self.group_id), topology)

    def assignment_epoch_record(self, epoch: int, timestamp_ms: int) -> Record:
        return Record(
            StreamsGroupTargetAssignmentMetadataKey(group_id=self.group_id),
            TargetAssignmentMetadataValue(
                assignment_epoch=epoch, assignment_timestamp=timestamp_ms
            ),
        )

    def target_record(self, member_id: str, target: TaskAssignment) -> Record:
        return Record(
            StreamsGroupTargetAssignmentMemberKey(group_id=self.group_id, member_id=member_id),
            StreamsGroupTargetAssignmentMemberValue(
                active_tasks=to_task_ids(target.active),
                standby_tasks=to_task_ids(target.standby),
                warmup_tasks=to_task_ids(target.warmup),
            ),
        )

    def member_tombstones(self, member_id: str) -> Iterable[Record]:
        for family in (
            StreamsGroupCurrentMemberAssignmentKey,
            StreamsGroupTargetAssignmentMemberKey,
            StreamsGroupMemberMetadataKey,
        ):
            yield Record(family(group_id=self.group_id, member_id=member_id), None)

    def tombstones(self) -> Iterable[Record]:
        """The records that remove the group."""
        for member_id in self.members:
            yield from self.member_tombstones(member_id)
        for family in (
            StreamsGroupTargetAssignmentMetadataKey,
            StreamsGroupTopologyKey,
            StreamsGroupMetadataKey,
        ):
            yield Record(family(group_id=self.group_id), None)

    def snapshot(self) -> Iterable[Record]:
        for member in self.members.values():
            yield member.metadata_record(self.group_id)
        if self.topology is not None:
            yield self.topology_record(self.topology)
        yield self.epoch_record(
            self.epoch, self.metadata_hash, self.validated_topology_epoch, self.assignment_configs
        )
        for member_id, target in self.targets.items():
            yield self.target_record(member_id, target)
        yield self.assignment_epoch_record(self.assignment_epoch, self.assignment_timestamp_ms)
        for member in self.members.values():
            yield member.assignment_record(self.group_id)

    # Replay.

    def replay(self, record: Record) -> None:
        value = record.value
        match record.key:
            case StreamsGroupMemberMetadataKey(member_id=member_id):
                if value is None:
                    self.members.pop(member_id, None)
                else:
                    self.members[member_id] = self._known_or_new(member_id).with_metadata(value)
            case StreamsGroupCurrentMemberAssignmentKey(member_id=member_id):
                # Compaction may leave an assignment before its member's record, which follows.
                if value is not None or member_id in self.members:
                    self.members[member_id] = self._known_or_new(member_id).with_assignment(value)
            case StreamsGroupTargetAssignmentMemberKey(member_id=member_id):
                assert isinstance(value, StreamsGroupTargetAssignmentMemberValue | None)
                self._replay_target(member_id, value)
            case StreamsGroupTargetAssignmentMetadataKey():
                assert isinstance(value, TargetAssignmentMetadataValue | None)
                self.assignment_epoch = value.assignment_epoch if value else FIRST_EPOCH
                self.assignment_timestamp_ms = value.assignment_timestamp if value else 0
            case StreamsGroupTopologyKey():
                assert isinstance(value, StreamsGroupTopologyValue | None)
                self.topology = value
            case StreamsGroupMetadataKey():
                assert isinstance(value, StreamsGroupMetadataValue | None)
                self._replay_epoch(value or StreamsGroupMetadataValue(epoch=FIRST_EPOCH))

    def _replay_epoch(self, value: StreamsGroupMetadataValue) -> None:
        self.epoch = value.epoch
        self.metadata_hash = value.metadata_hash
        self.validated_topology_epoch = value.validated_topology_epoch
        self.assignment_configs = {
            pair.key: pair.value for pair in value.last_assignment_configs or ()
        }

    def _replay_target(
        self, member_id: str, value: StreamsGroupTargetAssignmentMemberValue | None
    ) -> None:
        if value is None:
            self.targets.pop(member_id, None)
            return
        self.targets[member_id] = TaskAssignment(
            from_task_ids(value.active_tasks),
            from_task_ids(value.standby_tasks),
            from_task_ids(value.warmup_tasks),
        )

    def _known_or_new(self, member_id: str) -> StreamsMember:
        return self.members.get(member_id) or StreamsMember(member_id=member_id)
