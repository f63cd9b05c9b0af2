"""DescribeShareGroupOffsets (90): v0-v1.

The progress of share groups: the offset up to which all records are done, and how many are left. A
partition without an error has a message if dead letters of the group wait there.

A topic that does not exist has no offsets, which is no error.

v1  lag (KIP-1226), with the records that are held or wait for their time, though they may lie
    before the start offset; how many these are, in a tagged field of Ottla's own
"""

import asyncio
from collections.abc import Iterable

from kio.schema.describe_share_group_offsets.v1.request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32, i64

from ottla.groups.partitions import TopicIdPartition, by_topic
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.state_coordinator import NO_OFFSET, SharePartitionKey, ShareState
from ottla.handlers.authorization import DENIED, require, split_topics
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.dead_letter_notes import dead_letter_note
from ottla.handlers.refusals import refused
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from ottla.protocol.times import NO_THROTTLE
from ottla.protocol.topics import TopicPartition
from ottla.security.acls import Operation, ResourceType

_UNKNOWN_LAG = -1


async def handle(
    broker: Broker, context: RequestContext, request: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse:
    groups = await asyncio.gather(*(_group(broker, context, asked) for asked in request.groups))
    return DescribeShareGroupOffsetsResponse(throttle_time=NO_THROTTLE, groups=tuple(groups))


def error_response(
    request: DescribeShareGroupOffsetsRequest, error: ApiError
) -> DescribeShareGroupOffsetsResponse:
    return DescribeShareGroupOffsetsResponse(
        throttle_time=NO_THROTTLE,
        groups=tuple(_failed(asked.group_id, error) for asked in request.groups),
    )


def _failed(group_id: GroupId, error: ApiError) -> DescribeShareGroupOffsetsResponseGroup:
    return refused(DescribeShareGroupOffsetsResponseGroup, error, group_id=group_id)


async def _group(
    broker: Broker, context: RequestContext, asked: DescribeShareGroupOffsetsRequestGroup
) -> DescribeShareGroupOffsetsResponseGroup:
    """An unknown group has no progress; callers that set its start ask before it exists."""
    try:
        require(context, Operation.DESCRIBE, ResourceType.GROUP, asked.group_id)
        group = broker.groups.find(asked.group_id).machine.share_partitions.group(asked.group_id)
    except ApiError as error:
        if error.code is not ErrorCode.group_id_not_found:
            return _failed(asked.group_id, error)
        group = ShareGroup(asked.group_id)
    allowed, denied = split_topics(
        context, Operation.DESCRIBE, list(_wanted(broker, group, asked)), lambda topic: topic[0]
    )
    topics = await asyncio.gather(*(_topic(broker, group, name, found) for name, found in allowed))
    rejected = () if asked.topics is None else (_denied(*topic) for topic in denied)
    return DescribeShareGroupOffsetsResponseGroup(
        group_id=asked.group_id, topics=(*topics, *rejected), error_code=ErrorCode.none
    )


def _denied(name: str, partitions: Iterable[int]) -> DescribeShareGroupOffsetsResponseTopic:
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=TopicName(name),
        topic_id=None,
        partitions=tuple(_partition(index, error=DENIED) for index in partitions),
    )


def _wanted(
    broker: Broker, group: ShareGroup, asked: DescribeShareGroupOffsetsRequestGroup
) -> Iterable[tuple[str, tuple[int, ...]]]:
    if asked.topics is not None:
        for topic in asked.topics:
            yield topic.topic_name, topic.partitions
        return
    for topic_id, partitions in by_topic(group.initialized).items():
        name = broker.image.topic_name(topic_id)
        if name is not None:
            yield name, partitions


async def _topic(
    broker: Broker, group: ShareGroup, name: str, partitions: Iterable[int]
) -> DescribeShareGroupOffsetsResponseTopic:
    topic_id = broker.image.topic_id(name)

    async def describe(index: int) -> DescribeShareGroupOffsetsResponsePartition:
        topic_partition = None if topic_id is None else TopicIdPartition(topic_id, index)
        if topic_partition is None or topic_partition not in group.initialized:
            return _partition(index)
        try:
            return await _read(broker, group.group_id, name, topic_partition)
        except ApiError as error:
            return _partition(index, error=error)

    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=TopicName(name),
        topic_id=topic_id,
        partitions=tuple(await asyncio.gather(*map(describe, partitions))),
    )


async def _read(
    broker: Broker, group_id: str, name: str, topic_partition: TopicIdPartition
) -> DescribeShareGroupOffsetsResponsePartition:
    key = SharePartitionKey(group_id, *topic_partition)
    state = await broker.share.persister.read_summary(key)
    return _partition(
        topic_partition.partition,
        start_offset=state.start_offset,
        leader_epoch=max(0, state.leader_epoch),
        lag=await _lag(broker, TopicPartition(name, topic_partition.partition), state),
        parked_count=state.parked_count,
        note=await dead_letter_note(broker, key, state),
    )


async def _lag(broker: Broker, partition: TopicPartition, state: ShareState) -> int:
    """Unknown while the partition has no leader to ask."""
    if state.start_offset == NO_OFFSET:
        return _UNKNOWN_LAG
    try:
        start_offset, end_offset = await _ends(broker, partition, state.start_offset)
    except ApiError:
        return _UNKNOWN_LAG
    done_count = max(0, state.delivery_complete_count)
    return max(0, end_offset - start_offset - done_count) + state.parked_count


async def _ends(broker: Broker, partition: TopicPartition, start_offset: int) -> tuple[int, int]:
    """The range with records for the group, as far as this broker knows."""
    try:
        log = broker.replicas.find(*partition).log
    except ApiError:
        return start_offset, await broker.share.remote_log_ends.find(partition)
    return max(start_offset, log.log_start_offset), log.high_watermark


def _partition(
    index: int,
    *,
    start_offset: int = NO_OFFSET,
    leader_epoch: int = 0,
    lag: int = _UNKNOWN_LAG,
    parked_count: int = 0,
    note: str | None = None,
    error: ApiError | None = None,
) -> DescribeShareGroupOffsetsResponsePartition:
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=i32(index),
        start_offset=i64(start_offset),
        leader_epoch=i32(leader_epoch),
        lag=i64(lag),
        parked_count=i64(parked_count),
        error_code=ErrorCode.none if error is None else error.code,
        error_message=note if error is None else error.message,
    )
