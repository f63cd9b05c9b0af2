"""A member of a share group: it has its assignment from the moment that it is told."""

from dataclasses import replace

from ottla.groups.modern.member import ModernMember
from ottla.groups.modern.records import from_topic_partitions, to_topic_partitions
from ottla.groups.partitions import NOTHING, Assignment
from ottla.groups.record import Record, RecordValue
from ottla.groups.share.records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
)
from ottla.protocol.entities import entity


@entity
class ShareMember(ModernMember):
    def moved_to(self, epoch: int, assigned: Assignment) -> "ShareMember":
        if (epoch, assigned) == (self.epoch, self.assigned):
            return self
        return replace(self, epoch=epoch, previous_epoch=self.epoch, assigned=assigned)

    # Records.

    def metadata_record(self, group_id: str) -> Record:
        return Record(
            ShareGroupMemberMetadataKey(group_id=group_id, member_id=self.member_id),
            self.metadata(),
        )

    def metadata(self) -> ShareGroupMemberMetadataValue:
        return ShareGroupMemberMetadataValue(
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=self.subscribed_topic_names,
        )

    def with_metadata(self, value: RecordValue) -> "ShareMember":
        assert isinstance(value, ShareGroupMemberMetadataValue)
        return replace(
            self,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=tuple(sorted(set(value.subscribed_topic_names))),
        )

    def assignment_record(self, group_id: str) -> Record:
        return Record(
            ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=self.member_id),
            ShareGroupCurrentMemberAssignmentValue(
                member_epoch=self.epoch,
                previous_member_epoch=self.previous_epoch,
                assigned_partitions=to_topic_partitions(self.assigned),
            ),
        )

    def with_assignment(self, value: RecordValue | None) -> "ShareMember":
        if value is None:
            return replace(self, epoch=0, previous_epoch=-1, assigned=NOTHING)
        assert isinstance(value, ShareGroupCurrentMemberAssignmentValue)
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            assigned=from_topic_partitions(value.assigned_partitions),
        )
