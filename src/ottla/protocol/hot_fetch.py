"""Fetch (1): v4-v18, parsed in place and packed by hand.

v5   log start offsets
v7   fetch sessions (KIP-227)
v9   current leader epoch (KIP-320)
v11  rack of the reader and preferred read replica (KIP-392)
v12  flexible; last fetched epoch and diverging epoch (KIP-595)
v13  topic ids for names (KIP-516)
v15  replica state for replica id (KIP-903)
v16  node endpoints in the response (KIP-951)
v17  directory id of the follower (KIP-853)
v18  high watermark of the follower

A response is a list of parts in which records are only slices: they are placed between the bytes
around them and can leave by sendfile. Only their sizes are used.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from ottla.protocol.errors import ErrorCode, ProtocolError
from ottla.protocol.leader_hints import (
    NO_LEADER,
    Leader,
    NodeEndpoint,
    encode_leader,
    encode_node_endpoints,
)
from ottla.protocol.wire_primitives import (
    MALFORMED,
    compact_names,
    encode_count,
    legacy_names,
    read_compact_string,
    read_count,
    read_int32,
    read_string,
    read_tags,
    read_uuid,
    skip_tags,
    uuid_bytes,
    uvarint,
    validate_items,
)

LOG_START_OFFSET_FROM = 5
SESSION_FROM = 7
LEADER_EPOCH_FROM = 9
RACK_FROM = 11
FLEXIBLE_FROM = 12
TOPIC_ID_FROM = 13
REPLICA_STATE_FROM = 15
NODE_ENDPOINTS_FROM = 16
DIRECTORY_ID_FROM = 17
HIGH_WATERMARK_FROM = 18

HIGH_WATERMARK_UNKNOWN = 2**63 - 1
SESSIONLESS_EPOCH = -1


class FetchedPartition(NamedTuple):
    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int  # The requesting follower's; -1 for a consumer.
    partition_max_bytes: int
    replica_directory_id: UUID | None = None
    high_watermark: int = HIGH_WATERMARK_UNKNOWN


class FetchedTopic(NamedTuple):
    topic: str  # Empty from v13 on.
    topic_id: UUID | None  # From v13 on.
    partitions: list[FetchedPartition]


class ForgottenTopic(NamedTuple):
    topic: str
    topic_id: UUID | None
    partitions: list[int]


class FetchRequest(NamedTuple):
    replica_id: int  # -1 for a consumer.
    replica_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[FetchedTopic]
    forgotten: list[ForgottenTopic]
    rack_id: str
    cluster_id: str | None


_new_tuple = tuple.__new__
_unpack_start = struct.Struct(">iiiib").unpack_from
_unpack_start_with_session = struct.Struct(">iiiibii").unpack_from
_unpack_start_without_replica = struct.Struct(">iiibii").unpack_from
_unpack_partition_v4 = struct.Struct(">iqi").unpack_from
_unpack_partition_v5 = struct.Struct(">iqqi").unpack_from
_unpack_partition_v9 = struct.Struct(">iiqqi").unpack_from
_unpack_partition_v12 = struct.Struct(">iiqiqiB").unpack_from  # Plus the number of tagged fields.
_NO_PARTITION_TAGS: tuple[UUID | None, int] = (None, HIGH_WATERMARK_UNKNOWN)
_unpack_replica_state = struct.Struct(">iq").unpack_from
_unpack_int64 = struct.Struct(">q").unpack_from


def parse_fetch(frame: memoryview, position: int, version: int) -> FetchRequest:
    """The request whose body starts at `position`, or ProtocolError."""
    try:
        return _parse(frame, position, version)
    except MALFORMED:
        raise ProtocolError(f"a Fetch request is cut short in a frame of {len(frame)}") from None


def _parse(frame: memoryview, position: int, version: int) -> FetchRequest:
    replica_id = replica_epoch = -1
    session_id, session_epoch = 0, SESSIONLESS_EPOCH
    if version >= REPLICA_STATE_FROM:
        start = _unpack_start_without_replica(frame, position)
        max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch = start
        position += 21
    elif version >= SESSION_FROM:
        start = _unpack_start_with_session(frame, position)
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level = start[:5]
        session_id, session_epoch = start[5:]
        position += 25
    else:
        start = _unpack_start(frame, position)
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level = start
        position += 17
    topics, position = _parse_topics(frame, position, version)
    forgotten: list[ForgottenTopic] = []
    rack_id, cluster_id = "", None
    if version >= SESSION_FROM:
        forgotten, position = _parse_forgotten(frame, position, version)
    if version >= RACK_FROM:
        rack_id, position = read_string(frame, position, version >= FLEXIBLE_FROM)
    if version >= FLEXIBLE_FROM and frame[position]:
        cluster_id, state = _parse_tags(frame, position, version)
        replica_id, replica_epoch = state or (replica_id, -1)
    return _new_tuple(
        FetchRequest,
        (
            replica_id,
            replica_epoch,
            max_wait_ms,
            min_bytes,
            max_bytes,
            isolation_level,
            session_id,
            session_epoch,
            topics,
            forgotten,
            rack_id,
            cluster_id,
        ),
    )


def _parse_tags(
    frame: memoryview, position: int, version: int
) -> tuple[str | None, tuple[int, int] | None]:
    """The cluster id, and the id and epoch of the replica if present."""
    cluster_id, state = None, None
    for tag, start, end in read_tags(frame, position)[0]:
        if tag == 0:
            cluster_id, after = read_compact_string(frame, start)
        elif tag == 1 and version >= REPLICA_STATE_FROM:
            state = _unpack_replica_state(frame, start)
            after = read_tags(frame, start + 12)[1]
        else:
            continue
        _validate_tag_size(tag, after, end)
    return cluster_id, state


def _validate_tag_size(tag: int, after: int, end: int) -> None:
    if after != end:
        raise ProtocolError(f"tagged field {tag} is not as long as it says")


def _parse_topics(frame: memoryview, position: int, version: int) -> tuple[list[FetchedTopic], int]:
    flexible = version >= FLEXIBLE_FROM
    count, position = read_count(frame, position, flexible)
    items = count
    topics = []
    for _ in range(count):
        topic, topic_id, position = _read_topic_name(frame, position, version)
        partition_count, position = read_count(frame, position, flexible)
        items += partition_count
        validate_items(items)
        if flexible:
            partitions, position = _parse_partitions(frame, position, version, partition_count)
            position = skip_tags(frame, position)
        else:
            partitions, position = _parse_old_partitions(frame, position, version, partition_count)
        topics.append(_new_tuple(FetchedTopic, (topic, topic_id, partitions)))
    return topics, position


def _parse_partitions(
    frame: memoryview, position: int, version: int, count: int
) -> tuple[list[FetchedPartition], int]:
    partitions = []
    for _ in range(count):
        fields = _unpack_partition_v12(frame, position)
        position += 33
        values = fields[:6] + _NO_PARTITION_TAGS
        if fields[6]:
            tagged, position = _parse_partition_tags(frame, position - 1, version)
            values = fields[:6] + tagged
        partitions.append(_new_tuple(FetchedPartition, values))
    return partitions, position


def _parse_old_partitions(
    frame: memoryview, position: int, version: int, count: int
) -> tuple[list[FetchedPartition], int]:
    partitions = []
    leader_epoch = log_start_offset = -1
    for _ in range(count):
        if version >= LEADER_EPOCH_FROM:
            fields = _unpack_partition_v9(frame, position)
            partition, leader_epoch, offset, log_start_offset, max_bytes = fields
            position += 28
        elif version >= LOG_START_OFFSET_FROM:
            partition, offset, log_start_offset, max_bytes = _unpack_partition_v5(frame, position)
            position += 24
        else:
            partition, offset, max_bytes = _unpack_partition_v4(frame, position)
            position += 16
        values = (partition, leader_epoch, offset, -1, log_start_offset, max_bytes)
        partitions.append(_new_tuple(FetchedPartition, values + _NO_PARTITION_TAGS))
    return partitions, position


def _parse_partition_tags(
    frame: memoryview, position: int, version: int
) -> tuple[tuple[UUID | None, int], int]:
    """The directory id and the high watermark of the follower."""
    directory_id, high_watermark = _NO_PARTITION_TAGS
    tags, position = read_tags(frame, position)
    for tag, start, end in tags:
        if tag == 0 and version >= DIRECTORY_ID_FROM:
            directory_id, after = read_uuid(frame, start)
        elif tag == 1 and version >= HIGH_WATERMARK_FROM:
            (high_watermark,) = _unpack_int64(frame, start)
            after = start + 8
        else:
            continue
        _validate_tag_size(tag, after, end)
    return (directory_id, high_watermark), position


def _parse_forgotten(
    frame: memoryview, position: int, version: int
) -> tuple[list[ForgottenTopic], int]:
    flexible = version >= FLEXIBLE_FROM
    count, position = read_count(frame, position, flexible)
    items = count
    topics = []
    for _ in range(count):
        topic, topic_id, position = _read_topic_name(frame, position, version)
        partition_count, position = read_count(frame, position, flexible)
        items += partition_count
        validate_items(items)
        partitions = []
        for _ in range(partition_count):
            partitions.append(read_int32(frame, position)[0])
            position += 4
        if flexible:
            position = skip_tags(frame, position)
        topics.append(ForgottenTopic(topic, topic_id, partitions))
    return topics, position


def _read_topic_name(
    frame: memoryview, position: int, version: int
) -> tuple[str, UUID | None, int]:
    if version >= TOPIC_ID_FROM:
        topic_id, position = read_uuid(frame, position)
        return "", topic_id, position
    topic, position = read_string(frame, position, version >= FLEXIBLE_FROM)
    return topic, None, position


class RecordsSlice(Protocol):
    """Records that are somewhere else; the sender of the response knows where."""

    @property
    def size(self) -> int: ...


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int


class EpochEndOffset(NamedTuple):
    epoch: int
    end_offset: int


class SnapshotId(NamedTuple):
    end_offset: int
    epoch: int


class PartitionData(NamedTuple):
    partition: int
    error_code: int = ErrorCode.none
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    aborted_transactions: Sequence[AbortedTransaction] | None = None
    preferred_read_replica: int = -1
    records: RecordsSlice | None = None  # None is sent as no bytes, which every client accepts.
    diverging_epoch: EpochEndOffset | None = None
    current_leader: Leader | None = None
    snapshot_id: SnapshotId | None = None


class TopicData(NamedTuple):
    topic: str
    topic_id: UUID | None
    partitions: Sequence[PartitionData]


def group_by_topic(partitions: Iterable[tuple[str | UUID, PartitionData]]) -> list[TopicData]:
    """A topic is a name up to v12, an id from v13 on."""
    topics: dict[str | UUID, list[PartitionData]] = {}
    for topic, data in partitions:
        topics.setdefault(topic, []).append(data)
    return [
        TopicData(topic, None, found) if isinstance(topic, str) else TopicData("", topic, found)
        for topic, found in topics.items()
    ]


_INT32 = struct.Struct(">i")
_START = struct.Struct(">iii")
_START_WITH_SESSION = struct.Struct(">iiihi")
_START_FLEXIBLE = struct.Struct(">iiBihi")
_PARTITION_V4 = struct.Struct(">ihqq")
_PARTITION_V5 = struct.Struct(">ihqqq")
_PARTITION_V12 = struct.Struct(">ihqqqBi")  # Without aborted transactions.
_ABORTED = struct.Struct(">qq")
_ABORTED_FLEXIBLE = struct.Struct(">qqB")
_DIVERGING_EPOCH = struct.Struct(">iqB")
_SNAPSHOT_ID = struct.Struct(">qiB")


def encode_fetch_response(
    version: int,
    correlation_id: int,
    throttle_ms: int,
    error_code: int,
    session_id: int,
    topics: Sequence[TopicData],
    *,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> list[bytes | RecordsSlice]:
    """The parts of the whole frame; the first begins with the frame's size."""
    writer = _Parts(version)
    data = writer.data
    flexible = version >= FLEXIBLE_FROM
    if flexible:
        data += _START_FLEXIBLE.pack(0, correlation_id, 0, throttle_ms, error_code, session_id)
    elif version >= SESSION_FROM:
        data += _START_WITH_SESSION.pack(0, correlation_id, throttle_ms, error_code, session_id)
    else:
        data += _START.pack(0, correlation_id, throttle_ms)
    data += encode_count(len(topics), flexible)
    for topic in topics:
        writer.append_topic(topic)
    if flexible:
        endpoints = node_endpoints if version >= NODE_ENDPOINTS_FROM else ()
        writer.data += encode_node_endpoints(endpoints)
    return writer.finish()


class _Parts:
    """Bytes are collected in `data` until records come in between."""

    __slots__ = ("data", "flexible", "parts", "size", "version")

    def __init__(self, version: int) -> None:
        self.version = version
        self.flexible = version >= FLEXIBLE_FROM
        self.parts: list[bytes | RecordsSlice] = []
        self.data = bytearray()
        self.size = 0  # Bytes in all parts.

    def append_topic(self, topic: TopicData) -> None:
        name, topic_id, partitions = topic
        if self.version >= TOPIC_ID_FROM:
            self.data += uuid_bytes(topic_id)
        else:
            self.data += (compact_names if self.flexible else legacy_names)[name]
        self.data += encode_count(len(partitions), self.flexible)
        for partition in partitions:
            self._append_partition(partition)
        if self.flexible:
            self.data += b"\x00"

    def _append_partition(self, partition: PartitionData) -> None:
        data = self.data
        aborted = partition[5]
        if self.flexible and not aborted:
            # A null array is 0, an empty one 1.
            no_aborted = 0 if aborted is None else 1
            data += _PARTITION_V12.pack(*partition[:5], no_aborted, partition[6])
        else:
            if self.version >= LOG_START_OFFSET_FROM:
                data += _PARTITION_V5.pack(*partition[:5])
            else:
                data += _PARTITION_V4.pack(*partition[:4])
            data += _encode_aborted(aborted, self.flexible)
            if self.version >= RACK_FROM:
                data += _INT32.pack(partition.preferred_read_replica)
        self._append_records(partition.records)
        if self.flexible:
            self.data += _encode_partition_tags(partition)

    def _append_records(self, records: RecordsSlice | None) -> None:
        size = 0 if records is None else records.size
        self.data += encode_count(size, self.flexible)
        if records is not None and size:
            self._end_part()
            self.parts.append(records)
            self.size += size

    def _end_part(self) -> None:
        self.parts.append(bytes(self.data))
        self.size += len(self.data)
        self.data = bytearray()

    def finish(self) -> list[bytes | RecordsSlice]:
        if self.data:
            self._end_part()
        first = self.parts[0]
        assert isinstance(first, bytes)
        self.parts[0] = _INT32.pack(self.size - 4) + first[4:]
        return self.parts


def _encode_aborted(aborted: Sequence[AbortedTransaction] | None, flexible: bool) -> bytes:
    if not flexible:
        if aborted is None:
            return b"\xff\xff\xff\xff"
        return _INT32.pack(len(aborted)) + b"".join([_ABORTED.pack(*item) for item in aborted])
    if aborted is None:
        return b"\x00"
    items = b"".join([_ABORTED_FLEXIBLE.pack(*item, 0) for item in aborted])
    return uvarint(len(aborted) + 1) + items


def _encode_partition_tags(partition: PartitionData) -> bytes:
    diverging_epoch, leader, snapshot_id = partition[8:11]
    if diverging_epoch is None and leader is None and snapshot_id is None:
        return b"\x00"
    fields = []
    if diverging_epoch is not None and diverging_epoch != (-1, -1):
        fields.append((0, _DIVERGING_EPOCH.pack(*diverging_epoch, 0)))
    if leader is not None and leader != NO_LEADER:
        fields.append((1, encode_leader(leader)))
    if snapshot_id is not None and snapshot_id != (-1, -1):
        fields.append((2, _SNAPSHOT_ID.pack(*snapshot_id, 0)))
    encoded = [uvarint(tag) + uvarint(len(data)) + data for tag, data in fields]
    return uvarint(len(encoded)) + b"".join(encoded)
