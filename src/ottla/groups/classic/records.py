"""The record of a classic group: family 2.

Written when the group is created, when a generation has its assignment and when the group becomes
empty; what happens in between is not in the log.
"""

from dataclasses import field
from typing import ClassVar

from ottla.machine.record import KeyLayout, Record
from ottla.protocol.entities import entity, wire


@entity
class GroupMetadataKey(KeyLayout):
    RECORD_TYPE: ClassVar[int] = 2
    group: str = field(metadata=wire("string"))


@entity
class MemberMetadata:
    FLEXIBLE_SINCE: ClassVar[int] = 4
    member_id: str = field(metadata=wire("string"))
    group_instance_id: str | None = field(metadata=wire("string", since=3), default=None)
    client_id: str = field(metadata=wire("string"))
    client_host: str = field(metadata=wire("string"))
    rebalance_timeout: int = field(metadata=wire("int32", since=1), default=-1)
    session_timeout: int = field(metadata=wire("int32"))
    subscription: bytes = field(metadata=wire("bytes"))
    assignment: bytes = field(metadata=wire("bytes"))


@entity
class GroupMetadataValue:
    # Version 3 is the last inflexible one; Kafka before 3.5 cannot read a later one.
    version_written: ClassVar[int] = 3
    VERSIONS_READ: ClassVar[range] = range(5)
    FLEXIBLE_SINCE: ClassVar[int] = 4
    protocol_type: str = field(metadata=wire("string"))
    generation: int = field(metadata=wire("int32"))
    protocol: str | None = field(metadata=wire("string"))
    leader: str | None = field(metadata=wire("string"))
    current_state_timestamp: int = field(metadata=wire("int64", since=2), default=-1)
    members: tuple[MemberMetadata, ...]


def group_metadata(group_id: str, value: GroupMetadataValue) -> Record:
    return Record(GroupMetadataKey(group=group_id), value)


def group_tombstone(group_id: str) -> Record:
    return Record(GroupMetadataKey(group=group_id), None)
