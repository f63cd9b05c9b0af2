"""The target assignment of a consumer group."""

from collections.abc import Mapping
from uuid import UUID

from ottla.groups.assignors.range import assign_range
from ottla.groups.assignors.spec import Assignor, GroupSpec, MemberSpec
from ottla.groups.assignors.uniform import assign_uniform
from ottla.groups.consumer.draft import Draft
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.partitions import NOTHING
from ottla.machine.catalog import TopicCatalog

ASSIGNORS: Mapping[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}


def write_target(
    draft: Draft, catalog: TopicCatalog, counts: Mapping[UUID, int], default_assignor: str
) -> None:
    """Only what differs from the last target is written."""
    group = draft.group
    assign = ASSIGNORS[group.preferred_assignor(default_assignor)]
    targets = assign(_spec(group, catalog, counts))
    for member_id in sorted(group.members):
        target = targets.get(member_id, NOTHING)
        if group.targets.get(member_id) != target:
            draft.write(group.target_record(member_id, target))
    draft.write(group.assignment_epoch_record(group.epoch))


def _spec(group: ConsumerGroup, catalog: TopicCatalog, counts: Mapping[UUID, int]) -> GroupSpec:
    members = {}
    for member_id, member in group.members.items():
        ids = {catalog.topic_id(name) for name in group.topics_of(member)}
        members[member_id] = MemberSpec(
            topic_ids=frozenset(topic_id for topic_id in ids if topic_id in counts and topic_id),
            previous=group.target(member_id),
            instance_id=member.instance_id,
        )
    return GroupSpec(members, counts)
