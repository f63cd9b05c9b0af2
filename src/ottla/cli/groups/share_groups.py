"""Share groups in the protocol's own words: librdkafka's admin client does not know them."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kio.schema.alter_share_group_offsets.v0.request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kio.schema.describe_share_group_offsets.v1.request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from kio.schema.share_group_describe.v1.request import ShareGroupDescribeRequest
from kio.schema.share_group_describe.v1.response import DescribedGroup
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32, i64

from ottla.cli.broker_call import check, coordinator, find_group
from ottla.cli.connection import Connection
from ottla.client.wire.cluster import CoordinatorType
from ottla.protocol.topics import TopicPartition


class ShareOffset(NamedTuple):
    start_offset: int  # Every record before it is done.
    lag: int | None
    parked: int  # Records that are held, or wait for their time.
    note: str | None  # Of dead letters that wait.


def find_share_group(connection: Connection, group: str) -> DescribedGroup | None:
    request = ShareGroupDescribeRequest(
        group_ids=(GroupId(group),), include_authorized_operations=False
    )
    found: DescribedGroup | None = find_group(connection, group, request)
    return found


def share_offsets(connection: Connection, group: str) -> dict[TopicPartition, ShareOffset]:
    """Of the partitions that the group has begun to read."""
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=GroupId(group), topics=None)
    request = DescribeShareGroupOffsetsRequest(groups=(asked,))
    with coordinator(connection, CoordinatorType.GROUP, group) as broker:
        (found,) = broker.call(request).groups
    check(found.error_code, group, found.error_message)
    offsets = {}
    for topic in found.topics:
        for partition in topic.partitions:
            topic_partition = TopicPartition(topic.topic_name, partition.partition_index)
            check(partition.error_code, str(topic_partition), partition.error_message)
            if partition.start_offset >= 0:
                lag = partition.lag if partition.lag >= 0 else None
                offsets[topic_partition] = ShareOffset(
                    partition.start_offset, lag, partition.parked_count, partition.error_message
                )
    return offsets


def alter_share_offsets(
    connection: Connection, group: str, offsets: Mapping[TopicPartition, int]
) -> None:
    request = share_offsets_request(group, ((*name, offset) for name, offset in offsets.items()))
    with coordinator(connection, CoordinatorType.GROUP, group) as broker:
        altered = broker.call(request)
    check(altered.error_code, group, altered.error_message)
    for topic in altered.responses:
        for partition in topic.partitions:
            topic_partition = TopicPartition(topic.topic_name, partition.partition_index)
            check(partition.error_code, str(topic_partition), partition.error_message)


def share_offsets_request(
    group: str, offsets: Iterable[tuple[str, int, int]]
) -> AlterShareGroupOffsetsRequest:
    """`offsets` are of topic and partition."""
    topics: dict[str, list[AlterShareGroupOffsetsRequestPartition]] = {}
    for topic, partition, offset in offsets:
        topics.setdefault(topic, []).append(
            AlterShareGroupOffsetsRequestPartition(
                partition_index=i32(partition), start_offset=i64(offset)
            )
        )
    return AlterShareGroupOffsetsRequest(
        group_id=GroupId(group),
        topics=tuple(
            AlterShareGroupOffsetsRequestTopic(
                topic_name=TopicName(topic), partitions=tuple(partitions)
            )
            for topic, partitions in topics.items()
        ),
    )
