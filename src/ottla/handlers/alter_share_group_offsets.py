"""AlterShareGroupOffsets (91): v0.

Sets the offsets from which a share group without members continues, or a new one begins. Records in
flight are forgotten.
"""

from kio.schema.alter_share_group_offsets.v0.request import AlterShareGroupOffsetsRequest
from kio.schema.alter_share_group_offsets.v0.response import (
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)

from ottla.groups.partitions import TopicIdPartition
from ottla.groups.share.state_coordinator import NO_OFFSET
from ottla.handlers.authorization import DENIED, denied_topics, require
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.share_state import set_share_offsets
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation, ResourceType

_UNKNOWN = ApiError(ErrorCode.unknown_topic_or_partition, "there is no such partition")


async def handle(
    broker: Broker, context: RequestContext, request: AlterShareGroupOffsetsRequest
) -> AlterShareGroupOffsetsResponse:
    group_id = request.group_id
    require(context, Operation.READ, ResourceType.GROUP, group_id)
    denied = denied_topics(context, Operation.READ, (topic.topic_name for topic in request.topics))
    offsets: dict[TopicIdPartition, int] = {}
    for topic in request.topics:
        if topic.topic_name in denied:
            continue
        topic_id = broker.image.topic_id(topic.topic_name)
        count = broker.image.partition_count(topic.topic_name) or 0
        for partition in topic.partitions:
            if topic_id is not None and 0 <= partition.partition_index < count:
                topic_partition = TopicIdPartition(topic_id, partition.partition_index)
                offsets[topic_partition] = max(NO_OFFSET, partition.start_offset)
    if offsets or broker.groups.find(group_id).machine.has_share_group(group_id):
        state_epoch = await broker.groups.find(group_id).submit(
            lambda machine, _: machine.share_partitions.begin_alteration(group_id)
        )
        await set_share_offsets(broker, group_id, state_epoch, offsets)
    return AlterShareGroupOffsetsResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        responses=tuple(_topics(broker, request, offsets, denied)),
    )


def _topics(
    broker: Broker,
    request: AlterShareGroupOffsetsRequest,
    altered: dict[TopicIdPartition, int],
    denied: frozenset[str],
) -> "list[AlterShareGroupOffsetsResponseTopic]":
    topics = []
    for topic in request.topics:
        is_denied = topic.topic_name in denied
        topic_id = None if is_denied else broker.image.topic_id(topic.topic_name)
        refusal = DENIED if is_denied else _UNKNOWN
        partitions = []
        for partition in topic.partitions:
            known = topic_id is not None and (topic_id, partition.partition_index) in altered
            partitions.append(
                AlterShareGroupOffsetsResponsePartition(
                    partition_index=partition.partition_index,
                    error_code=ErrorCode.none if known else refusal.code,
                    error_message=None if known else refusal.message,
                )
            )
        topics.append(
            AlterShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name, topic_id=topic_id, partitions=tuple(partitions)
            )
        )
    return topics
