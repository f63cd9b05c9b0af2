"""A streams group (KIP-1071): replicated state that only `replay` changes.

Empty        no members
NotReady     topics of the topology are missing or do not fit
Assigning    the target assignment is older than the group epoch
Reconciling  some member does not have its target yet
Stable       all members do
"""

from collections.abc import Iterable
from typing import ClassVar

from ottla.groups.modern.draft import GroupDraft
from ottla.groups.modern.group import Families, ModernGroup
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
)
from ottla.groups.streams.tasks import NOTHING, Task, TaskAssignment
from ottla.groups.streams.topology import required_topics
from ottla.machine.record import Record


class StreamsGroup(ModernGroup[StreamsMember, TaskAssignment]):
    type_name = "streams"
    protocol_type_name = "streams"
    FAMILIES = Families(
        epoch=StreamsGroupMetadataKey,
        epoch_value=StreamsGroupMetadataValue,
        member=StreamsGroupMemberMetadataKey,
        assignment_epoch=StreamsGroupTargetAssignmentMetadataKey,
        target=StreamsGroupTargetAssignmentMemberKey,
        current=StreamsGroupCurrentMemberAssignmentKey,
        target_value=StreamsGroupTargetAssignmentMemberValue,
    )
    NOTHING: ClassVar = NOTHING

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.validated_topology_epoch = -1
        self.assignment_configs: tuple[KeyValue, ...] = ()  # Of the last epoch.
        self.topology: StreamsGroupTopologyValue | None = None

    @property
    def state_name(self) -> str:
        ready = self.topology and self.topology.epoch == self.validated_topology_epoch
        return super().state_name if ready or not self.members else "NotReady"

    def subscribed_topics(self) -> frozenset[str]:
        return frozenset() if self.topology is None else required_topics(self.topology)

    def is_subscribed_to(self, topic: str) -> bool:
        """The topology of a group without members holds no offsets back."""
        return bool(self.members) and super().is_subscribed_to(topic)

    def tasks_reading(self, topic: str, partition: int) -> list[Task]:
        parts = self.topology.subtopologies if self.topology is not None else ()
        return [Task(part.subtopology_id, partition) for part in parts if topic in part.sources]

    # Specific to streams groups.

    def epoch_record(
        self,
        epoch: int,
        metadata_hash: int,
        validated_topology_epoch: int | None = None,
        configs: tuple[KeyValue, ...] | None = None,
    ) -> Record:
        """Unless given, the topology's epoch and the configuration stay what they are."""
        if validated_topology_epoch is None:
            validated_topology_epoch = self.validated_topology_epoch
        value = StreamsGroupMetadataValue(
            epoch=epoch,
            metadata_hash=metadata_hash,
            validated_topology_epoch=validated_topology_epoch,
            last_assignment_configs=self.assignment_configs if configs is None else configs,
        )
        return Record(StreamsGroupMetadataKey(group_id=self.group_id), value)

    def topology_record(self, topology: StreamsGroupTopologyValue) -> Record:
        return Record(StreamsGroupTopologyKey(group_id=self.group_id), topology)

    def _more_records(self) -> Iterable[Record]:
        if self.topology is not None:
            yield self.topology_record(self.topology)

    def _more_tombstones(self) -> Iterable[Record]:
        yield Record(StreamsGroupTopologyKey(group_id=self.group_id), None)

    def _replay_more(self, record: Record) -> None:
        if isinstance(record.key, StreamsGroupTopologyKey):
            assert isinstance(record.value, StreamsGroupTopologyValue | None)
            self.topology = record.value

    def _replay_epoch(self, value: StreamsGroupMetadataValue) -> None:
        super()._replay_epoch(value)
        self.validated_topology_epoch = value.validated_topology_epoch
        self.assignment_configs = value.last_assignment_configs or ()

    def _new_member(self, member_id: str) -> StreamsMember:
        return StreamsMember(member_id=member_id)


Draft = GroupDraft[StreamsGroup]
