"""A share group (KIP-932): a partition may have many members, and none must revoke it first.

    Empty   no members
    Stable  otherwise

Only partitions whose state has been initialized at the share coordinator are assigned.
"""

from collections.abc import Iterable

from ottla.groups.modern.draft import GroupDraft
from ottla.groups.modern.group import Families, ModernGroup
from ottla.groups.modern.records import EpochValue
from ottla.groups.partitions import NOTHING, Assignment, assignment_of
from ottla.groups.share.member import ShareMember
from ottla.groups.share.records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMetadataKey,
)
from ottla.machine.record import Record
from ottla.protocol.errors import ApiError, ErrorCode


class ShareGroup(ModernGroup[ShareMember, Assignment]):
    type_name = "share"
    protocol_type_name = "share"
    FAMILIES = Families(
        epoch=ShareGroupMetadataKey,
        epoch_value=EpochValue,
        member=ShareGroupMemberMetadataKey,
        assignment_epoch=ShareGroupTargetAssignmentMetadataKey,
        target=ShareGroupTargetAssignmentMemberKey,
        current=ShareGroupCurrentMemberAssignmentKey,
    )

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.state_partitions = ShareGroupStatePartitionMetadataValue()
        self.initialized: Assignment = NOTHING

    @property
    def state_name(self) -> str:
        return "Stable" if self.members else "Empty"

    # Validation. A share group has no committed offsets, but state at the share coordinator.

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

    # Specific to share groups.

    def state_record(self, value: ShareGroupStatePartitionMetadataValue) -> Record:
        return Record(ShareGroupStatePartitionMetadataKey(group_id=self.group_id), value)

    def _more_records(self) -> Iterable[Record]:
        yield self.state_record(self.state_partitions)

    def _more_tombstones(self) -> Iterable[Record]:
        yield Record(ShareGroupStatePartitionMetadataKey(group_id=self.group_id), None)

    def _replay_more(self, record: Record) -> None:
        value = record.value
        if isinstance(record.key, ShareGroupStatePartitionMetadataKey):
            assert isinstance(value, ShareGroupStatePartitionMetadataValue | None)
            self.state_partitions = value or ShareGroupStatePartitionMetadataValue()
            self.initialized = assignment_of(
                (topic.topic_id, topic.partitions)
                for topic in self.state_partitions.initialized_topics
            )

    def _new_member(self, member_id: str) -> ShareMember:
        return ShareMember(member_id=member_id)


Draft = GroupDraft[ShareGroup]
