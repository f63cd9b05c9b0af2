"""Records of committed offsets: family 1 (and 0, its first name)."""

import uuid
from dataclasses import dataclass, field
from typing import ClassVar

from ottla.groups.record import KeyLayout, Record, wire
from ottla.protocol.topics import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitKey(KeyLayout):
    RECORD_TYPE: ClassVar[int] = 1
    group: str = field(metadata=wire("string"))
    topic: str = field(metadata=wire("string"))
    partition: int = field(metadata=wire("int32"))


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitValue:
    VERSIONS_READ: ClassVar[range] = range(5)
    FLEXIBLE_SINCE: ClassVar[int] = 4
    offset: int = field(metadata=wire("int64"))
    leader_epoch: int = field(metadata=wire("int32", since=3), default=-1)
    metadata: str = field(metadata=wire("string"))
    commit_timestamp: int = field(metadata=wire("int64"))
    expire_timestamp: int = field(metadata=wire("int64", since=1, until=1), default=-1)
    topic_id: uuid.UUID | None = field(metadata=wire("uuid", since=4, tag=0), default=None)

    @property
    def version_written(self) -> int:
        """Only version 1 can say when an offset expires, as clients before 2.1 did."""
        return 4 if self.expire_timestamp < 0 else 1


def offset_commit(group_id: str, place: TopicPartition, value: OffsetCommitValue) -> Record:
    key = OffsetCommitKey(group=group_id, topic=place.topic, partition=place.partition)
    return Record(key, value)


def offset_tombstone(group_id: str, place: TopicPartition) -> Record:
    return Record(
        OffsetCommitKey(group=group_id, topic=place.topic, partition=place.partition), None
    )
