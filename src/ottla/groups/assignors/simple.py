"""The simple assignor of share groups: every partition has members, every member has partitions.

A partition may have many members. With fewer members than partitions, each partition has one member
and all members have about the same number of partitions; with more, each member has one partition
and all partitions have about the same number of members. Members keep what they had as far as that
stays balanced.
"""

from collections.abc import Iterable

from ottla.groups.assignors.spec import GroupSpec
from ottla.groups.partitions import Assignment, TopicIdPartition


def assign_simple(spec: GroupSpec, partitions: Iterable[TopicIdPartition]) -> dict[str, Assignment]:
    sharing = _Sharing(spec, sorted(partitions))
    if spec.members:
        sharing.keep_previous()
        sharing.cover_partitions()
        sharing.cover_members()
    return {member_id: frozenset(owned) for member_id, owned in sharing.owned.items()}


class _Sharing:
    def __init__(self, spec: GroupSpec, partitions: list[TopicIdPartition]) -> None:
        self.owned: dict[str, set[TopicIdPartition]] = {
            each: set() for each in sorted(spec.members)
        }
        self._spec = spec
        self._members: dict[TopicIdPartition, int] = dict.fromkeys(partitions, 0)
        self._subscribers = {
            topic_id: [each for each in self.owned if topic_id in spec.members[each].topic_ids]
            for topic_id in {partition.topic_id for partition in partitions}
        }

    def keep_previous(self) -> None:
        """Keep earlier assignments as long as they leave enough for the others."""
        if not self._members:
            return
        owned_room = _Room(len(self._members), len(self.owned))
        members_room = _Room(len(self.owned), len(self._members))
        for member_id, owned in self.owned.items():
            member = self._spec.members[member_id]
            for partition in sorted(member.previous):
                count = self._members.get(partition)
                if count is None or partition.topic_id not in member.topic_ids:
                    continue
                if owned_room.has(len(owned)) and members_room.has(count):
                    owned_room.take(len(owned))
                    members_room.take(count)
                    self._give(partition, member_id)

    def cover_partitions(self) -> None:
        for partition, count in self._members.items():
            subscribers = self._subscribers[partition.topic_id]
            if not count and subscribers:
                self._give(partition, min(subscribers, key=lambda each: len(self.owned[each])))

    def cover_members(self) -> None:
        for member_id, owned in self.owned.items():
            topic_ids = self._spec.members[member_id].topic_ids
            wanted = [each for each in self._members if each.topic_id in topic_ids]
            if not owned and wanted:
                self._give(min(wanted, key=self._members.__getitem__), member_id)

    def _give(self, partition: TopicIdPartition, member_id: str) -> None:
        self.owned[member_id].add(partition)
        self._members[partition] += 1


class _Room:
    """Items divided among takers: each takes the same number, some one more."""

    def __init__(self, item_count: int, taker_count: int) -> None:
        self._share, self._extra = divmod(item_count, taker_count)
        if not self._share:  # Each taker still gets one, since items are shared.
            self._share, self._extra = 1, 0

    def has(self, taken_count: int) -> bool:
        return taken_count < self._share or (taken_count == self._share and self._extra > 0)

    def take(self, taken_count: int) -> None:
        if taken_count == self._share:
            self._extra -= 1
