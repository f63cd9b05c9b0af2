"""The target assignment of a group: the input of its assignor, and the records of its result."""

from typing import Any

from ottla.groups.assignors.spec import GroupSpec, MemberSpec
from ottla.groups.modern.group import ModernGroup
from ottla.groups.modern.subscription import partition_counts
from ottla.groups.partitions import Assignment
from ottla.machine.catalog import TopicCatalog


def group_spec(group: ModernGroup[Any, Assignment], catalog: TopicCatalog) -> GroupSpec:
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
