"""The directory names of partitions, as in Kafka."""

import re
from uuid import UUID

from ottla.protocol.topics import TopicPartition

_NAME_LENGTH_MAX = 255
_PARTITION = re.compile(r"([a-zA-Z0-9._-]+)-(\d+)")
_DELETED = re.compile(r".+\.[0-9a-f]{32}-delete")
_FUTURE = re.compile(r"([a-zA-Z0-9._-]+)-(\d+)\.[0-9a-f]{32}-future")
_STRAY = re.compile(r".+\.[0-9a-f]{32}-stray")


def parse_partition(name: str) -> TopicPartition | None:
    """None if the name is not that of a partition directory."""
    match = _PARTITION.fullmatch(name)
    return TopicPartition(match[1], int(match[2])) if match else None


def parse_future(name: str) -> TopicPartition | None:
    """The partition that is moving into a directory with this name; None for any other name."""
    match = _FUTURE.fullmatch(name)
    return TopicPartition(match[1], int(match[2])) if match else None


def name_for_future(topic_partition: TopicPartition, unique: UUID) -> str | None:
    """None if the topic name is too long for it."""
    name = f"{topic_partition}.{unique.hex}-future"
    return name if len(name) <= _NAME_LENGTH_MAX else None


def name_for_deletion(topic_partition: TopicPartition, unique: UUID) -> str:
    """Lets the partition be created again while its old directory waits for removal."""
    return _renamed(topic_partition, f".{unique.hex}-delete")


def name_for_stray(topic_partition: TopicPartition, unique: UUID) -> str:
    """For a directory that is set aside: only a person removes it."""
    return _renamed(topic_partition, f".{unique.hex}-stray")


def is_stray(name: str) -> bool:
    return _STRAY.fullmatch(name) is not None


def is_deleted(name: str) -> bool:
    return _DELETED.fullmatch(name) is not None


def _renamed(topic_partition: TopicPartition, suffix: str) -> str:
    return str(topic_partition)[: _NAME_LENGTH_MAX - len(suffix)] + suffix
