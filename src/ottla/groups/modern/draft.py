"""A group as an operation would leave it.

An operation writes records one after the other and looks at their effect on the group: every record
is replayed at once, with the same code that will replay it into the group once it has been
appended, but into a copy layered over the group. A heartbeat that changes nothing makes no copy.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar

from ottla.groups.modern.group import ModernGroup
from ottla.groups.modern.member import ModernMember
from ottla.machine.record import Record

G = TypeVar("G", bound=ModernGroup[Any, Any])


class GroupDraft(Generic[G]):
    def __init__(self, group: G, records: Iterable[Record] = ()) -> None:
        """`records` belong to other groups, must come first, and are not replayed."""
        self.group = group
        self.records: list[Record] = list(records)
        self._drafted = False

    def write(self, *records: Record) -> None:
        if not self._drafted:
            self.group = self.group.drafted()
            self._drafted = True
        for record in records:
            self.records.append(record)
            self.group.replay(record)

    def write_member(self, member: ModernMember[Any]) -> bool:
        """Write the member's metadata if it has changed; returns whether it has."""
        known = self.group.members.get(member.member_id)
        if known is member or (known is not None and known.metadata() == member.metadata()):
            return False
        self.write(self.group.member_record(member))
        return True

    def write_subscriber(self, member: ModernMember[Any]) -> bool:
        """Like `write_member`, but returns whether the subscription has changed."""
        known = self.group.members.get(member.member_id)
        written = self.write_member(member)
        return written and (known is None or known.subscription != member.subscription)

    def write_assignment(self, member: ModernMember[Any]) -> None:
        """Write the member's assignment if it has changed."""
        if member != self.group.members[member.member_id]:
            self.write(self.group.assignment_record(member))

    def write_target(self, targets: Mapping[str, Any], now_ms: int) -> None:
        """Writes only the differences from the last target."""
        group = self.group
        for member_id in sorted(group.members):
            target = targets.get(member_id, group.NOTHING)
            if group.targets.get(member_id) != target:
                self.write(group.target_record(member_id, target))
        self.write(group.assignment_epoch_record(group.epoch, now_ms))
