"""Where a share group that is new to a topic begins, decided before its first consumer comes."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from kio.schema.alter_share_group_offsets.v0.request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kio.schema.describe_share_group_offsets.v1.request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32, i64

from ottla.client.async_wire.cluster import Cluster
from ottla.client.wire.cluster import CoordinatorType, expect_one
from ottla.client.wire.errors import validate_answer
from ottla.protocol.errors import ErrorCode

_NOT_STARTED: Final = -1
_IN_USE: Final = (ErrorCode.non_empty_group, ErrorCode.group_subscribed_to_topic)


async def begin_at(cluster: Cluster, group: str, topic: str, offsets: Mapping[int, int]) -> None:
    """Begin at these offsets, unless the group has begun already."""

    async def begin() -> None:
        if not await _has_begun(cluster, group, topic, offsets):
            await _alter(cluster, group, topic, offsets)

    await cluster.retry(begin)


async def describe_starts(
    cluster: Cluster, group: str, topic: str, partitions: Collection[int]
) -> Any:
    """What the coordinator answers about the group."""
    wanted = DescribeShareGroupOffsetsRequestTopic(
        topic_name=TopicName(topic), partitions=tuple(map(i32, partitions))
    )
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=GroupId(group), topics=(wanted,))
    coordinator = await cluster.coordinator(CoordinatorType.GROUP, group)
    response = await coordinator.call(DescribeShareGroupOffsetsRequest(groups=(asked,)))
    return expect_one(response.groups)


async def _has_begun(cluster: Cluster, group: str, topic: str, partitions: Collection[int]) -> bool:
    found = await describe_starts(cluster, group, topic, partitions)
    if found.error_code is ErrorCode.group_id_not_found:
        return False
    validate_answer(found.error_code, f"group {group}")
    return any(
        partition.start_offset != _NOT_STARTED
        for each in found.topics
        for partition in each.partitions
    )


async def _alter(cluster: Cluster, group: str, topic: str, offsets: Mapping[int, int]) -> None:
    partitions = tuple(
        AlterShareGroupOffsetsRequestPartition(
            partition_index=i32(partition), start_offset=i64(offset)
        )
        for partition, offset in offsets.items()
    )
    wanted = AlterShareGroupOffsetsRequestTopic(topic_name=TopicName(topic), partitions=partitions)
    request = AlterShareGroupOffsetsRequest(group_id=GroupId(group), topics=(wanted,))
    coordinator = await cluster.coordinator(CoordinatorType.GROUP, group)
    response = await coordinator.call(request)
    if response.error_code in _IN_USE:
        return
    validate_answer(response.error_code, f"offsets of group {group}")
    for each in response.responses:
        for partition in each.partitions:
            validate_answer(partition.error_code, f"offset of group {group} in {topic}")
