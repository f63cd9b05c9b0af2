"""The target assignment of a share group, and its partitions."""

from ottla.groups.assignors.simple import assign_simple
from ottla.groups.modern import target
from ottla.groups.modern.draft import GroupDraft
from ottla.groups.modern.subscription import metadata_hash, partition_counts
from ottla.groups.partitions import Assignment, all_partitions, by_topic
from ottla.groups.share.group import ShareGroup
from ottla.machine.catalog import TopicCatalog

Draft = GroupDraft[ShareGroup]

ASSIGNOR_NAME = "simple"


def subscribed_partitions(group: ShareGroup, catalog: TopicCatalog) -> Assignment:
    """The partitions of the subscribed topics that exist."""
    return frozenset(all_partitions(partition_counts(group.subscribed_topics(), catalog)))


def assignable_hash(assignable: Assignment) -> int:
    return metadata_hash({topic_id: len(found) for topic_id, found in by_topic(assignable).items()})


def write_target(draft: Draft, catalog: TopicCatalog, assignable: Assignment, now_ms: int) -> None:
    spec = target.group_spec(draft.group, catalog)
    target.write_target(draft, assign_simple(spec, assignable), now_ms)
