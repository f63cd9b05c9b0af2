"""What is in a queue, and emptying a topic."""

from collections.abc import Mapping
from typing import NamedTuple

from kio.schema.types import GroupId
from kio.static.primitive import i8, i16, i32, i64

from ottla.client.async_wire.cluster import Cluster
from ottla.client.async_wire.connection import Connection
from ottla.client.async_wire.reading import list_offsets
from ottla.client.async_wire.topics import ALL_RECORDS, delete_records
from ottla.client.share_wire.share_group_starts import begin_at, describe_starts
from ottla.client.wire.cluster import TopicPartition
from ottla.client.wire.errors import validate_answer
from ottla.client.wire.offsets import EARLIEST, LATEST
from ottla.protocol.messages.delivery_acknowledge import (
    AcknowledgedGroup,
    AcknowledgedPartition,
    AcknowledgedTopic,
    Delivery,
    DeliveryAcknowledgeRequest,
    DeliveryAcknowledgeType,
)


class QueueCounts(NamedTuple):
    available: int  # Also those that ordinary members have.
    parked: int  # Held by consumers, or delayed.


async def clear(cluster: Cluster, topic: str) -> dict[int, int]:
    """Delete all records that the topic has now; where each partition begins then."""
    partitions = (await cluster.topic(topic)).leaders  # A missing topic is not waited for.
    return await delete_records(cluster, topic, dict.fromkeys(partitions, ALL_RECORDS))


async def skip(cluster: Cluster, topic: str, group: str) -> None:
    """The group is done with all records that the topic has now; others still read them."""
    topic_partitions = [
        TopicPartition(topic, each) for each in (await cluster.topic(topic)).leaders
    ]
    ends = await list_offsets(cluster, dict.fromkeys(topic_partitions, LATEST))
    offsets = {topic_partition.partition: end for topic_partition, end in ends.items() if end}
    if not offsets:
        return
    await begin_at(cluster, group, topic, offsets)

    async def say() -> None:
        by_leader: dict[Connection, dict[int, int]] = {}
        for partition, offset in offsets.items():
            leader = await cluster.leader(TopicPartition(topic, partition))
            by_leader.setdefault(leader, {})[partition] = offset
        for leader, led in by_leader.items():
            await _skip(cluster, leader, topic, group, led)

    await cluster.retry(say)


async def _skip(
    cluster: Cluster, leader: Connection, topic: str, group: str, offsets: Mapping[int, int]
) -> None:
    partitions = tuple(
        AcknowledgedPartition(
            partition_index=i32(partition),
            deliveries=(
                Delivery(
                    first_offset=i64(0),
                    last_offset=i64(offset - 1),
                    holder="",
                    delivery_count=i16(0),
                    type=i8(DeliveryAcknowledgeType.SKIP),
                ),
            ),
        )
        for partition, offset in offsets.items()
    )
    asked = AcknowledgedTopic(topic_id=(await cluster.topic(topic)).id, partitions=partitions)
    groups = (AcknowledgedGroup(group_id=GroupId(group), topics=(asked,)),)
    response = await leader.call(DeliveryAcknowledgeRequest(groups=groups))
    for partition in response.groups[0].topics[0].partitions:
        topic_partition = TopicPartition(topic, partition.partition_index)
        validate_answer(partition.error_code, f"group {group} in {topic_partition}")
        for each in partition.deliveries:
            validate_answer(each.error_code, f"group {group} in {topic_partition}")


async def counts(cluster: Cluster, topic: str, group: str) -> QueueCounts:
    """Where the coordinator knows no lag, records that were acknowledged out of order count too."""

    async def describe() -> tuple[int, int, dict[TopicPartition, int]]:
        partitions = (await cluster.topic(topic)).leaders
        found = await describe_starts(cluster, group, topic, partitions)
        validate_answer(found.error_code, f"group {group}")
        available = parked = 0
        begins: dict[TopicPartition, int] = {}
        for described in found.topics:
            for partition in described.partitions:
                topic_partition = TopicPartition(topic, partition.partition_index)
                validate_answer(partition.error_code, f"group {group} in {topic_partition}")
                parked += partition.parked_count
                if partition.lag < 0:
                    begins[topic_partition] = partition.start_offset
                else:
                    available += max(0, partition.lag - partition.parked_count)
        return available, parked, begins

    available, parked, begins = await cluster.retry(describe)
    return QueueCounts(available + await _count_records(cluster, begins), parked)


async def _count_records(cluster: Cluster, begins: Mapping[TopicPartition, int]) -> int:
    """From these offsets on. A group that has not met a partition begins with its first record."""
    if not begins:
        return 0
    firsts = await list_offsets(cluster, dict.fromkeys(begins, EARLIEST))
    ends = await list_offsets(cluster, dict.fromkeys(begins, LATEST))
    return sum(
        max(0, (ends[topic_partition] or 0) - max(begin, firsts[topic_partition] or 0))
        for topic_partition, begin in begins.items()
    )
