"""Resolves subscribed names to existing topics."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from ottla.groups.modern.group import ModernGroup
from ottla.machine.catalog import TopicCatalog


def partition_counts(topics: Iterable[str], catalog: TopicCatalog) -> Mapping[UUID, int]:
    """For the topics that exist."""
    counts = {}
    for name in sorted(topics):
        topic_id, count = catalog.topic_id(name), catalog.partition_count(name)
        if topic_id is not None and count:
            counts[topic_id] = count
    return counts


def metadata_hash(counts: Mapping[UUID, int]) -> int:
    """0 for no topics; the same topics give the same value on every node."""
    if not counts:
        return 0
    digest = hashlib.blake2b(digest_size=8)
    for topic_id, count in sorted(counts.items()):
        digest.update(topic_id.bytes)
        digest.update(count.to_bytes(4, "big"))
    return int.from_bytes(digest.digest(), "big", signed=True)


def subscribed_hash(group: ModernGroup[Any, Any], catalog: TopicCatalog) -> int:
    return metadata_hash(partition_counts(group.subscribed_topics(), catalog))
