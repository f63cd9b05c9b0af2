"""OffsetFetch, for a single group.

A topic is identified by name, or by id from version 10 on. A group or a partition without an offset
is not an error: its offset is -1.
"""

from collections.abc import Iterable

from kio.schema.offset_fetch.v10.response import OffsetFetchResponsePartitions
from kio.static.primitive import i32, i64

from ottla.groups.offsets.records import OffsetCommitValue
from ottla.groups.state import CoordinatorState
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopics,
)
from ottla.protocol.topics import TopicPartition

_NO_OFFSET = -1


def fetch_offsets(
    state: CoordinatorState, request: OffsetFetchRequestGroup, *, require_stable: bool
) -> Result[OffsetFetchResponseGroup]:
    """With `require_stable`, omits offsets that an open transaction may change (KIP-447)."""
    group_id = request.group_id
    group = state.group(group_id)
    if group is not None:
        try:
            group.validate_offset_fetch(request.member_id, request.member_epoch)
        except ApiError as error:
            refusal = OffsetFetchResponseGroup(group_id=group_id, topics=(), error_code=error.code)
            return Result(refusal)
    unstable = state.offsets.pending_partitions(group_id) if require_stable else set()
    topics = tuple(_topic(state, group_id, topic, unstable) for topic in _wanted(state, request))
    return Result(OffsetFetchResponseGroup(group_id=group_id, topics=topics))


def _wanted(
    state: CoordinatorState, request: OffsetFetchRequestGroup
) -> Iterable[OffsetFetchRequestTopics]:
    if request.topics is not None:
        return request.topics
    indexes: dict[str, list[i32]] = {}
    for topic_partition, committed in state.offsets.of_group(request.group_id).items():
        if _is_of_this_topic(state, topic_partition, committed.value):
            indexes.setdefault(topic_partition.topic, []).append(i32(topic_partition.partition))
    return (
        OffsetFetchRequestTopics(
            name=topic,
            topic_id=state.catalog.topic_id(topic),
            partition_indexes=tuple(sorted(found)),
        )
        for topic, found in sorted(indexes.items())
    )


def _topic(
    state: CoordinatorState,
    group_id: str,
    topic: OffsetFetchRequestTopics,
    unstable: set[TopicPartition],
) -> OffsetFetchResponseTopics:
    name = topic.name
    if not name and topic.topic_id is not None:
        name = state.catalog.topic_name(topic.topic_id) or ""
    if name:
        partitions = tuple(
            _partition(state, group_id, TopicPartition(name, index), unstable)
            for index in topic.partition_indexes
        )
    else:
        partitions = tuple(
            _partition_response(index, _NO_OFFSET, -1, "", ErrorCode.unknown_topic_id)
            for index in topic.partition_indexes
        )
    return OffsetFetchResponseTopics(name=name, topic_id=topic.topic_id, partitions=partitions)


def _partition(
    state: CoordinatorState,
    group_id: str,
    topic_partition: TopicPartition,
    unstable: set[TopicPartition],
) -> OffsetFetchResponsePartitions:
    error = ErrorCode.unstable_offset_commit if topic_partition in unstable else ErrorCode.none
    committed = state.offsets.of_group(group_id).get(topic_partition)
    if (
        topic_partition in unstable
        or committed is None
        or not _is_of_this_topic(state, topic_partition, committed.value)
    ):
        return _partition_response(topic_partition.partition, _NO_OFFSET, -1, "", error)
    value = committed.value
    return _partition_response(
        topic_partition.partition, value.offset, value.leader_epoch, value.metadata, error
    )


def _is_of_this_topic(
    state: CoordinatorState, topic_partition: TopicPartition, value: OffsetCommitValue
) -> bool:
    """Whether the offset is not from an earlier topic with the same name."""
    topic_id = state.catalog.topic_id(topic_partition.topic)
    return value.topic_id is None or topic_id is None or topic_id == value.topic_id


def _partition_response(
    index: int, offset: int, leader_epoch: int, metadata: str, error: ErrorCode
) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=i32(index),
        committed_offset=i64(offset),
        committed_leader_epoch=i32(leader_epoch),
        metadata=metadata,
        error_code=error,
    )
