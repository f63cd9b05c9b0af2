"""The names of the directories of partitions, as Kafka has them."""

import re
from uuid import UUID

from ottla.protocol.topics import TopicPartition

_NAME_LENGTH_MAX = 255
_PARTITION = re.compile(r"([a-zA-Z0-9._-]+)-(\d+)")
_DELETED = re.compile(r".+\.[0-9a-f]{32}-delete")


def parse_partition(name: str) -> TopicPartition | None:
    """None when a directory of this name is not that of a partition."""
    match = _PARTITION.fullmatch(name)
    return TopicPartition(match[1], int(match[2])) if match else None


def name_for_deletion(topic_partition: TopicPartition, unique: UUID) -> str:
    """So that the partition may be made again while its old directory waits for removal."""
    suffix = f".{unique.hex}-delete"
    return str(topic_partition)[: _NAME_LENGTH_MAX - len(suffix)] + suffix


def is_deleted(name: str) -> bool:
    return _DELETED.fullmatch(name) is not None
