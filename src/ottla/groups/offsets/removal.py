"""Removes offsets: by OffsetDelete, with their group, with their topic, and by age (KIP-211)."""

from collections.abc import Collection, Iterable
from itertools import islice

from kio.schema.delete_groups.v2.response import DeletableGroupResult
from kio.schema.offset_delete.v0.request import OffsetDeleteRequest, OffsetDeleteRequestTopic
from kio.schema.offset_delete.v0.response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kio.schema.types import GroupId

from ottla.groups.group import Group
from ottla.groups.offsets.records import (
    OffsetCommitRecord,
    OffsetCommitValue,
    offset_tombstone,
)
from ottla.groups.state import CoordinatorState
from ottla.machine.record import Record
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.protocol.topics import TopicPartition

BATCH_RECORDS_MAX = 5_000  # Tombstones of some 100 bytes each; a batch must stay below 1 MB.


def delete_offsets(
    state: CoordinatorState, request: OffsetDeleteRequest
) -> Result[OffsetDeleteResponse]:
    if not request.group_id:
        raise ApiError(ErrorCode.invalid_group_id, "the group id is empty")
    group = _existing_group(state, request.group_id)
    group.validate_offset_delete()
    records: list[OffsetCommitRecord] = []
    topics = tuple(
        OffsetDeleteResponseTopic(
            name=topic.name, partitions=tuple(_delete_topic(state, group, topic, records))
        )
        for topic in request.topics
    )
    response = OffsetDeleteResponse(
        error_code=ErrorCode.none, throttle_time=NO_THROTTLE, topics=topics
    )
    return Result(response, tuple(records))


def _delete_topic(
    state: CoordinatorState,
    group: Group,
    topic: OffsetDeleteRequestTopic,
    records: list[OffsetCommitRecord],
) -> Iterable[OffsetDeleteResponsePartition]:
    count = state.catalog.partition_count(topic.name) or 0
    subscribed = group.is_subscribed_to(topic.name)
    topic_partitions = _topic_partitions(state, group.group_id)
    for partition in topic.partitions:
        topic_partition = TopicPartition(topic.name, partition.partition_index)
        error = ErrorCode.none
        if not 0 <= topic_partition.partition < count:
            error = ErrorCode.unknown_topic_or_partition
        elif subscribed:
            error = ErrorCode.group_subscribed_to_topic
        elif topic_partition in topic_partitions:
            records.append(offset_tombstone(group.group_id, topic_partition))
        yield OffsetDeleteResponsePartition(
            partition_index=partition.partition_index, error_code=error
        )


def delete_groups(
    state: CoordinatorState, group_ids: Iterable[str]
) -> Result[tuple[DeletableGroupResult, ...]]:
    records: list[Record | OffsetCommitRecord] = []
    results = []
    for group_id in group_ids:
        error = ErrorCode.none
        try:
            group = _existing_group(state, group_id)
            group.validate_delete()
        except ApiError as refusal:
            error = refusal.code
        else:
            records.extend(
                offset_tombstone(group_id, topic_partition)
                for topic_partition in sorted(_topic_partitions(state, group_id))
            )
            records.extend(group.tombstones())
        results.append(DeletableGroupResult(group_id=GroupId(group_id), error_code=error))
    return Result(tuple(results), tuple(records))


def remove_topics(state: CoordinatorState, topics: Collection[str]) -> tuple[Result[None], bool]:
    """The topics were deleted: a later topic with the same name starts without their offsets.

    Removes as many offsets as fit into one batch; also returns whether more are left.
    """
    found = sorted(state.offsets.topic_partitions_of_topics(set(topics)))
    now = found[:BATCH_RECORDS_MAX]
    result = Result(None, tuple(offset_tombstone(*entry) for entry in now))
    return result, len(now) < len(found)


def expire_offsets(state: CoordinatorState, now_ms: int) -> tuple[Result[None], bool]:
    """Remove offsets past their retention, and groups with neither members nor offsets.

    Removes about one batch; also returns whether more may be left. A share group stays until it is
    deleted: its state is elsewhere.
    """
    records: list[Record | OffsetCommitRecord] = []
    for group_id in tuple(state.group_ids()):
        if len(records) >= BATCH_RECORDS_MAX:
            return Result(None, tuple(records)), True
        if group_id in state.share_groups:
            continue
        group = state.group(group_id)
        assert group is not None, "every id in the state is that of a group"
        expired = list(islice(_expired(state, group, now_ms), BATCH_RECORDS_MAX))
        records.extend(offset_tombstone(group_id, topic_partition) for topic_partition in expired)
        is_left_alone = group.is_empty and not state.offsets.has_open_transaction(group_id)
        if is_left_alone and len(expired) == len(state.offsets.of_group(group_id)):
            records.extend(_farewell(state, group))
    return Result(None, tuple(records)), False


def _farewell(state: CoordinatorState, group: Group) -> Iterable[Record]:
    """A group without anything in the log needs no tombstone; it is forgotten here."""
    if state.has_record(group.group_id) or state.offsets.knows(group.group_id):
        return group.tombstones()
    state.forget_unused(group.group_id)
    return ()


def _expired(state: CoordinatorState, group: Group, now_ms: int) -> Iterable[TopicPartition]:
    unstable = state.offsets.pending_partitions(group.group_id)
    offsets = state.offsets.of_group(group.group_id)
    topics = {topic_partition.topic for topic_partition in offsets}
    subscribed = {topic for topic in topics if group.is_subscribed_to(topic)}
    for topic_partition, committed in sorted(offsets.items()):
        if topic_partition in unstable or topic_partition.topic in subscribed:
            continue
        if _is_expired(state, group, committed.value, now_ms):
            yield topic_partition


def _is_expired(
    state: CoordinatorState, group: Group, value: OffsetCommitValue, now_ms: int
) -> bool:
    start_ms = group.offset_retention_start_ms(value.commit_timestamp)
    if start_ms is None:
        return False
    if value.expire_timestamp >= 0:
        return now_ms >= value.expire_timestamp
    return now_ms - start_ms >= state.config.offsets_retention_ms


def _topic_partitions(state: CoordinatorState, group_id: str) -> set[TopicPartition]:
    return {*state.offsets.of_group(group_id), *state.offsets.pending_partitions(group_id)}


def _existing_group(state: CoordinatorState, group_id: str) -> Group:
    group = state.group(group_id)
    if group is None:
        raise ApiError(ErrorCode.group_id_not_found, f"there is no group {group_id}")
    return group
