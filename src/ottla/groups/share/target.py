"""The target assignment of a share group, and the partitions that it is made of."""

from collections.abc import Iterable
from uuid import UUID

from ottla.groups.assignors.simple import assign_simple
from ottla.groups.assignors.spec import GroupSpec, MemberSpec
from ottla.groups.consumer.subscription import metadata_hash
from ottla.groups.draft import GroupDraft
from ottla.groups.partitions import (
    NOTHING,
    Assignment,
    TopicIdPartition,
    all_partitions,
    by_topic,
)
from ottla.groups.share.group import ShareGroup
from ottla.machine.catalog import TopicCatalog

Draft = GroupDraft[ShareGroup]

ASSIGNOR_NAME = "simple"


def subscribed_partitions(group: ShareGroup, catalog: TopicCatalog) -> Assignment:
    """Of the subscribed topics that exist."""
    counts: dict[UUID, int] = {}
    for name in group.subscribed_topics():
        topic_id, count = catalog.topic_id(name), catalog.partition_count(name)
        if topic_id is not None and count:
            counts[topic_id] = count
    return frozenset(all_partitions(counts))


def assignable_hash(assignable: Assignment) -> int:
    return metadata_hash({topic_id: len(found) for topic_id, found in by_topic(assignable).items()})


def write_target(
    draft: Draft, catalog: TopicCatalog, assignable: Iterable[TopicIdPartition]
) -> None:
    """Only what differs from the last target is written."""
    group = draft.group
    targets = assign_simple(_spec(group, catalog), assignable)
    for member_id in sorted(group.members):
        target = targets.get(member_id, NOTHING)
        if group.targets.get(member_id) != target:
            draft.write(group.target_record(member_id, target))
    draft.write(group.assignment_epoch_record(group.epoch))


def _spec(group: ShareGroup, catalog: TopicCatalog) -> GroupSpec:
    members = {}
    for member_id, member in group.members.items():
        ids = (catalog.topic_id(name) for name in member.subscribed_topic_names)
        members[member_id] = MemberSpec(
            topic_ids=frozenset(topic_id for topic_id in ids if topic_id is not None),
            previous=group.target(member_id),
        )
    return GroupSpec(members, {})
