"""OffsetFetch of one group, by topic name.

Version 10, which has topic ids instead, is translated by its handler. A group or a partition
without an offset is no error: it has offset -1.
"""

from collections.abc import Iterable

from kio.schema.offset_fetch.v9.request import OffsetFetchRequestGroup
from kio.schema.offset_fetch.v9.response import (
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32, i64

from ottla.groups.offsets.records import OffsetCommitValue
from ottla.groups.state import CoordinatorState
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition

_NO_OFFSET = -1


def fetch_offsets(
    state: CoordinatorState, request: OffsetFetchRequestGroup, *, require_stable: bool
) -> Result[OffsetFetchResponseGroup]:
    """With `require_stable` an offset that an open transaction may change is not told (KIP-447)."""
    group_id = request.group_id
    if not group_id:
        return Result(_group_response(group_id, (), ErrorCode.invalid_group_id))
    group = state.group(group_id)
    if group is not None:
        try:
            group.validate_offset_fetch(request.member_id, request.member_epoch)
        except ApiError as error:
            return Result(_group_response(group_id, (), error.code))
    unstable = state.offsets.pending_places(group_id) if require_stable else set()
    topics = tuple(
        OffsetFetchResponseTopics(
            name=TopicName(topic),
            partitions=tuple(
                _partition(state, group_id, TopicPartition(topic, index), unstable)
                for index in indexes
            ),
        )
        for topic, indexes in _wanted(state, request)
    )
    return Result(_group_response(group_id, topics, ErrorCode.none))


def _wanted(
    state: CoordinatorState, request: OffsetFetchRequestGroup
) -> Iterable[tuple[str, Iterable[int]]]:
    if request.topics is not None:
        return [(topic.name, topic.partition_indexes) for topic in request.topics]
    indexes: dict[str, list[int]] = {}
    for place, committed in state.offsets.of_group(request.group_id).items():
        if _is_of_this_topic(state, place, committed.value):
            indexes.setdefault(place.topic, []).append(place.partition)
    return [(topic, sorted(found)) for topic, found in sorted(indexes.items())]


def _partition(
    state: CoordinatorState, group_id: str, place: TopicPartition, unstable: set[TopicPartition]
) -> OffsetFetchResponsePartitions:
    error = ErrorCode.unstable_offset_commit if place in unstable else ErrorCode.none
    committed = state.offsets.of_group(group_id).get(place)
    if (
        place in unstable
        or committed is None
        or not _is_of_this_topic(state, place, committed.value)
    ):
        return _partition_response(place.partition, _NO_OFFSET, -1, "", error)
    value = committed.value
    return _partition_response(
        place.partition, value.offset, value.leader_epoch, value.metadata, error
    )


def _is_of_this_topic(
    state: CoordinatorState, place: TopicPartition, value: OffsetCommitValue
) -> bool:
    """The offset is not one of an earlier topic of the same name."""
    topic_id = state.catalog.topic_id(place.topic)
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


def _group_response(
    group_id: GroupId, topics: tuple[OffsetFetchResponseTopics, ...], error: ErrorCode
) -> OffsetFetchResponseGroup:
    return OffsetFetchResponseGroup(group_id=group_id, topics=topics, error_code=error)
