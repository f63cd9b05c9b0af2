"""Records of committed offsets: families 0 and 1 of `__consumer_offsets`.

There are millions of them, so they are plain tuples, and have their own codec.
"""

import uuid
from typing import NamedTuple

from ottla.protocol.topics import TopicPartition


class OffsetCommitValue(NamedTuple):
    offset: int
    metadata: str
    commit_timestamp: int
    leader_epoch: int = -1
    expire_timestamp: int = -1  # Only clients before 2.1 set an expiry.
    topic_id: uuid.UUID | None = None  # The id of the topic with that name at that time.


class OffsetCommitRecord(NamedTuple):
    group_id: str
    topic_partition: TopicPartition
    value: OffsetCommitValue | None  # None is a tombstone: the offset was removed.


def offset_tombstone(group_id: str, topic_partition: TopicPartition) -> OffsetCommitRecord:
    return OffsetCommitRecord(group_id, topic_partition, None)
