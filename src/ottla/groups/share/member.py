"""A member of a share group: it has its assignment from the moment that it is told."""

from dataclasses import replace
from typing import ClassVar

from ottla.groups.modern.member import ModernMember
from ottla.groups.modern.records import from_topic_partitions, to_topic_partitions
from ottla.groups.partitions import NOTHING, Assignment
from ottla.groups.share.records import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
)
from ottla.machine.record import RecordValue
from ottla.protocol.entities import entity


@entity
class ShareMember(ModernMember[Assignment]):
    METADATA: ClassVar = ShareGroupMemberMetadataValue

    assigned: Assignment = NOTHING

    def moved_to(self, epoch: int, assigned: Assignment) -> "ShareMember":
        if (epoch, assigned) == (self.epoch, self.assigned):
            return self
        return replace(self, epoch=epoch, previous_epoch=self.epoch, assigned=assigned)

    def assignment(self) -> ShareGroupCurrentMemberAssignmentValue:
        return ShareGroupCurrentMemberAssignmentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            assigned_partitions=to_topic_partitions(self.assigned),
        )

    def with_assignment(self, value: RecordValue) -> "ShareMember":
        assert isinstance(value, ShareGroupCurrentMemberAssignmentValue)
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            assigned=from_topic_partitions(value.assigned_partitions),
        )

    def without_assignment(self) -> "ShareMember":
        return replace(self, epoch=0, previous_epoch=-1, assigned=NOTHING)
