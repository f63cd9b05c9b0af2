"""The target assignment of a share group, and its partitions."""

from ottla.groups.assignors.simple import assign_simple
from ottla.groups.modern.subscription import metadata_hash, partition_counts
from ottla.groups.modern.target import group_spec
from ottla.groups.partitions import Assignment, all_partitions, by_topic
from ottla.groups.share.group import Draft, ShareGroup
from ottla.machine.catalog import TopicCatalog

ASSIGNOR_NAME = "simple"


def subscribed_partitions(group: ShareGroup, catalog: TopicCatalog) -> Assignment:
    """The partitions of the subscribed topics that exist."""
    return frozenset(all_partitions(partition_counts(group.subscribed_topics(), catalog)))


def assignable(group: ShareGroup, catalog: TopicCatalog) -> Assignment:
    return group.initialized & subscribed_partitions(group, catalog)


def assignable_hash(assignable: Assignment) -> int:
    return metadata_hash({topic_id: len(found) for topic_id, found in by_topic(assignable).items()})


def write_target(draft: Draft, catalog: TopicCatalog, now_ms: int) -> None:
    spec = group_spec(draft.group, catalog)
    draft.write_target(assign_simple(spec, assignable(draft.group, catalog)), now_ms)
