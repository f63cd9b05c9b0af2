"""The target assignment of a group: the input of its assignor, and the records of its result."""

from collections.abc import Mapping
from typing import Any, TypeVar

from ottla.groups.assignors.spec import GroupSpec, MemberSpec
from ottla.groups.modern.draft import GroupDraft
from ottla.groups.modern.group import ModernGroup
from ottla.groups.modern.member import ModernMember
from ottla.groups.modern.subscription import partition_counts
from ottla.groups.partitions import NOTHING, Assignment
from ottla.machine.catalog import TopicCatalog

G = TypeVar("G", bound=ModernGroup[Any])


def group_spec(group: ModernGroup[Any], catalog: TopicCatalog) -> GroupSpec:
    counts = partition_counts(group.subscribed_topics(), catalog)
    topic_ids = {
        subscription: frozenset(partition_counts(group.topics_of(subscription), catalog))
        for subscription in group.subscriptions
    }
    members = {
        member_id: MemberSpec(
            topic_ids=topic_ids[member.subscription],
            previous=group.target(member_id),
            instance_id=member.instance_id,
        )
        for member_id, member in group.members.items()
    }
    return GroupSpec(members, counts)


def write_target(draft: GroupDraft[G], targets: Mapping[str, Assignment], now_ms: int) -> None:
    """Writes only the differences from the last target."""
    group = draft.group
    for member_id in sorted(group.members):
        target = targets.get(member_id, NOTHING)
        if group.targets.get(member_id) != target:
            draft.write(group.target_record(member_id, target))
    draft.write(group.assignment_epoch_record(group.epoch, now_ms))


def write_member(draft: GroupDraft[G], member: ModernMember) -> bool:
    """Write the member if it has changed; returns whether its subscription has."""
    known = draft.group.members.get(member.member_id)
    if known is member or (known is not None and known.metadata() == member.metadata()):
        return False
    draft.write(member.metadata_record(draft.group.group_id))
    return known is None or known.subscription != member.subscription
