"""Records of consumer groups (KIP-848): families 3 to 8, and 16 for regular expressions.

3  the group's epoch
4  the partitions of the subscribed topics (written by Kafka before 4.1; read, never written)
5  a member and what it subscribes to
6  the epoch of the target assignment
7  the target assignment of a member
8  the current assignment of a member
16 the topics that a subscribed regular expression resolves to
"""

import uuid
from dataclasses import field
from typing import Any, ClassVar

from ottla.groups.modern.records import (
    EpochValue,
    PartitionMetadataValue,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
)
from ottla.groups.record_keys import GroupKey, MemberKey
from ottla.machine.record import KeyLayout, ValueLayout
from ottla.protocol.entities import entity, wire


@entity
class ConsumerGroupMetadataKey(GroupKey):
    RECORD_TYPE: ClassVar[int] = 3


@entity
class ConsumerGroupMetadataValue(EpochValue):
    metadata_hash: int = field(metadata=wire("int64", tag=0), default=0)


@entity
class ConsumerGroupPartitionMetadataKey(GroupKey):
    RECORD_TYPE: ClassVar[int] = 4


@entity
class ConsumerGroupMemberMetadataKey(MemberKey):
    RECORD_TYPE: ClassVar[int] = 5


@entity
class ClassicProtocol(ValueLayout):
    name: str = field(metadata=wire("string"))
    metadata: bytes = field(metadata=wire("bytes"))


@entity
class ClassicMemberMetadata(ValueLayout):
    """Present while the member still uses the classic protocol."""

    session_timeout_ms: int = field(metadata=wire("int32"))
    supported_protocols: tuple[ClassicProtocol, ...]


@entity
class ConsumerGroupMemberMetadataValue(ValueLayout):
    instance_id: str | None = field(metadata=wire("string"), default=None)
    rack_id: str | None = field(metadata=wire("string"), default=None)
    client_id: str = field(metadata=wire("string"))
    client_host: str = field(metadata=wire("string"))
    subscribed_topic_names: tuple[str, ...] = field(metadata=wire("string"), default=())
    subscribed_topic_regex: str | None = field(metadata=wire("string"), default=None)
    rebalance_timeout_ms: int = field(metadata=wire("int32"), default=-1)
    server_assignor: str | None = field(metadata=wire("string"), default=None)
    classic: ClassicMemberMetadata | None = field(metadata=wire("struct", tag=0), default=None)


@entity
class ConsumerGroupTargetAssignmentMetadataKey(GroupKey):
    RECORD_TYPE: ClassVar[int] = 6


@entity
class ConsumerGroupTargetAssignmentMemberKey(MemberKey):
    RECORD_TYPE: ClassVar[int] = 7


@entity
class ConsumerGroupCurrentMemberAssignmentKey(MemberKey):
    RECORD_TYPE: ClassVar[int] = 8


@entity
class CurrentTopicPartitions(ValueLayout):
    topic_id: uuid.UUID | None = field(metadata=wire("uuid"))
    partitions: tuple[int, ...] = field(metadata=wire("int32"))
    # When the member got each partition (KIP-1251); empty means in its own epoch.
    assignment_epochs: tuple[int, ...] | None = field(metadata=wire("int32", tag=0), default=())


@entity
class ConsumerGroupCurrentMemberAssignmentValue(ValueLayout):
    member_epoch: int = field(metadata=wire("int32"))
    previous_member_epoch: int = field(metadata=wire("int32"))
    state: int = field(metadata=wire("int8"))
    assigned_partitions: tuple[CurrentTopicPartitions, ...]
    partitions_pending_revocation: tuple[CurrentTopicPartitions, ...]


@entity
class ConsumerGroupRegularExpressionKey(KeyLayout):
    RECORD_TYPE: ClassVar[int] = 16
    group_id: str = field(metadata=wire("string"))
    regular_expression: str = field(metadata=wire("string"))


@entity
class ConsumerGroupRegularExpressionValue(ValueLayout):
    topics: tuple[str, ...] = field(metadata=wire("string"))
    version: int = field(metadata=wire("int64"))
    timestamp: int = field(metadata=wire("int64"))


CONSUMER_FAMILIES: tuple[tuple[type[Any], type[Any]], ...] = (
    (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    (ConsumerGroupPartitionMetadataKey, PartitionMetadataValue),
    (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    (ConsumerGroupTargetAssignmentMetadataKey, TargetAssignmentMetadataValue),
    (ConsumerGroupTargetAssignmentMemberKey, TargetAssignmentMemberValue),
    (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
)

CONSUMER_KEYS = tuple(key for key, _ in CONSUMER_FAMILIES)
