"""From what members subscribe to, to topics that exist."""

import hashlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from uuid import UUID

from ottla.groups.consumer.draft import Draft
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.records import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from ottla.groups.consumer.regex import TopicPattern
from ottla.groups.record import Record
from ottla.machine.catalog import TopicCatalog
from ottla.protocol.topics import INTERNAL_TOPICS


@lru_cache(maxsize=256)
def compiled(expression: str) -> TopicPattern:
    """Raises ApiError(invalid_regular_expression)."""
    return TopicPattern(expression)


def resolve_expressions(draft: Draft, catalog: TopicCatalog, now_ms: int) -> bool:
    """Bring the topics of every subscribed expression up to date; whether one has changed."""
    group = draft.group
    wanted = {
        member.subscribed_topic_regex
        for member in group.members.values()
        if member.subscribed_topic_regex
    }
    changed = False
    for expression in sorted(wanted):
        topics = tuple(sorted(_matching(expression, catalog)))
        known = group.resolved.get(expression)
        if known is None or known.topics != topics:
            changed = True
            value = ConsumerGroupRegularExpressionValue(
                topics=topics, version=catalog.topics_version, timestamp=now_ms
            )
            draft.write(_record(group, expression, value))
    for expression in sorted(group.resolved.keys() - wanted):
        draft.write(_record(group, expression, None))
    return changed


def _matching(expression: str, catalog: TopicCatalog) -> Iterable[str]:
    """Internal topics are subscribed to by name only."""
    pattern = compiled(expression)
    return (
        name
        for name in catalog.topic_names()
        if name not in INTERNAL_TOPICS and pattern.matches(name)
    )


def _record(
    group: ConsumerGroup, expression: str, value: ConsumerGroupRegularExpressionValue | None
) -> Record:
    key = ConsumerGroupRegularExpressionKey(group_id=group.group_id, regular_expression=expression)
    return Record(key, value)


def partition_counts(group: ConsumerGroup, catalog: TopicCatalog) -> Mapping[UUID, int]:
    """Of the subscribed topics that exist."""
    counts = {}
    for name in sorted(group.subscribed_topics()):
        topic_id, count = catalog.topic_id(name), catalog.partition_count(name)
        if topic_id is not None and count:
            counts[topic_id] = count
    return counts


def metadata_hash(counts: Mapping[UUID, int]) -> int:
    """0 for no topics; the same for the same topics on every node."""
    if not counts:
        return 0
    digest = hashlib.blake2b(digest_size=8)
    for topic_id, count in sorted(counts.items()):
        digest.update(topic_id.bytes)
        digest.update(count.to_bytes(4, "big"))
    return int.from_bytes(digest.digest(), "big", signed=True)
