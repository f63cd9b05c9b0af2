"""Records of share groups in `__consumer_offsets`: families 9 to 15.

9  the partitions of the subscribed topics (written by Kafka before 4.1; read, never written)
10 a member and what it subscribes to
11 the group's epoch
12 the epoch of the target assignment
13 the target assignment of a member
14 the current assignment of a member
15 the share-partitions whose state the share coordinator has
"""

import uuid
from dataclasses import field
from typing import Any, ClassVar

from ottla.groups.modern.records import (
    EpochValue,
    PartitionMetadataValue,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
    TopicPartitions,
)
from ottla.groups.record_keys import GroupKey, MemberKey
from ottla.machine.record import ValueLayout
from ottla.protocol.entities import entity, wire


@entity
class ShareGroupPartitionMetadataKey(GroupKey):
    RECORD_TYPE: ClassVar[int] = 9


@entity
class ShareGroupMemberMetadataKey(MemberKey):
    RECORD_TYPE: ClassVar[int] = 10


@entity
class ShareGroupMemberMetadataValue(ValueLayout):
    rack_id: str | None = field(metadata=wire("string"), default=None)
    client_id: str = field(metadata=wire("string"))
    client_host: str = field(metadata=wire("string"))
    subscribed_topic_names: tuple[str, ...] = field(metadata=wire("string"), default=())


@entity
class ShareGroupMetadataKey(GroupKey):
    RECORD_TYPE: ClassVar[int] = 11


@entity
class ShareGroupTargetAssignmentMetadataKey(GroupKey):
    RECORD_TYPE: ClassVar[int] = 12


@entity
class ShareGroupTargetAssignmentMemberKey(MemberKey):
    RECORD_TYPE: ClassVar[int] = 13


@entity
class ShareGroupCurrentMemberAssignmentKey(MemberKey):
    RECORD_TYPE: ClassVar[int] = 14


@entity
class ShareGroupCurrentMemberAssignmentValue(ValueLayout):
    member_epoch: int = field(metadata=wire("int32"))
    previous_member_epoch: int = field(metadata=wire("int32"))
    state: int = field(metadata=wire("int8"), default=0)  # Kafka knows only stable members.
    assigned_partitions: tuple[TopicPartitions, ...]


@entity
class ShareGroupStatePartitionMetadataKey(GroupKey):
    RECORD_TYPE: ClassVar[int] = 15


@entity
class TopicPartitionsInfo(ValueLayout):
    topic_id: uuid.UUID | None = field(metadata=wire("uuid"))
    topic_name: str = field(metadata=wire("string"))
    partitions: tuple[int, ...] = field(metadata=wire("int32"))
    create_timestamp: int = field(metadata=wire("int64"), default=0)


@entity
class TopicInfo(ValueLayout):
    topic_id: uuid.UUID | None = field(metadata=wire("uuid"))
    topic_name: str = field(metadata=wire("string"))


@entity
class ShareGroupStatePartitionMetadataValue(ValueLayout):
    initializing_topics: tuple[TopicPartitionsInfo, ...] = ()
    initialized_topics: tuple[TopicPartitionsInfo, ...] = ()
    deleting_topics: tuple[TopicInfo, ...] = ()


SHARE_FAMILIES: tuple[tuple[type[Any], type[Any]], ...] = (
    (ShareGroupPartitionMetadataKey, PartitionMetadataValue),
    (ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue),
    (ShareGroupMetadataKey, EpochValue),
    (ShareGroupTargetAssignmentMetadataKey, TargetAssignmentMetadataValue),
    (ShareGroupTargetAssignmentMemberKey, TargetAssignmentMemberValue),
    (ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue),
    (ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue),
)

SHARE_KEYS = tuple(key for key, _ in SHARE_FAMILIES)
