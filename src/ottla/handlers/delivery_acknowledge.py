"""DeliveryAcknowledge (10000): v0, an API of Ottla's own.

Reports the outcome of share group deliveries, from anyone who knows it: a gateway speaks for its
consumers, also for deliveries made by another gateway. Each partition is handled by its leader. If
a partition has an error, it is open what happened to its deliveries; repeating the request is safe.
"""

import asyncio

from kio.schema.types import GroupId

from ottla.groups.partitions import TopicIdPartition
from ottla.handlers.authorization import require
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.refusals import refused
from ottla.handlers.share_calls import NO_TOPIC, validate_readable
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages.delivery_acknowledge import (
    AcknowledgedGroup,
    AcknowledgedPartition,
    AcknowledgedTopic,
    DeliveryAcknowledgeRequest,
    DeliveryAcknowledgeResponse,
    DeliveryResult,
    GroupResult,
    PartitionResult,
    TopicResult,
)
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation, ResourceType

_DONE = DeliveryResult(error_code=ErrorCode.none)


async def handle(
    broker: Broker, context: RequestContext, request: DeliveryAcknowledgeRequest
) -> DeliveryAcknowledgeResponse:
    groups = await asyncio.gather(*(_group(broker, context, group) for group in request.groups))
    return DeliveryAcknowledgeResponse(throttle_time=NO_THROTTLE, groups=tuple(groups))


def error_response(
    request: DeliveryAcknowledgeRequest, error: ApiError
) -> DeliveryAcknowledgeResponse:
    return DeliveryAcknowledgeResponse(
        throttle_time=NO_THROTTLE,
        groups=tuple(
            GroupResult(
                group_id=group.group_id,
                topics=tuple(
                    TopicResult(
                        topic_id=topic.topic_id,
                        partitions=tuple(_failed(each, error) for each in topic.partitions),
                    )
                    for topic in group.topics
                ),
            )
            for group in request.groups
        ),
    )


async def _group(broker: Broker, context: RequestContext, group: AcknowledgedGroup) -> GroupResult:
    topics = await asyncio.gather(
        *(_topic(broker, context, group.group_id, each) for each in group.topics)
    )
    return GroupResult(group_id=group.group_id, topics=tuple(topics))


async def _topic(
    broker: Broker, context: RequestContext, group_id: GroupId, topic: AcknowledgedTopic
) -> TopicResult:
    async def acknowledge(asked: AcknowledgedPartition) -> PartitionResult:
        topic_partition = TopicIdPartition(topic.topic_id or NO_TOPIC, asked.partition_index)
        try:
            require(context, Operation.READ, ResourceType.GROUP, group_id)
            validate_readable(broker, context, topic_partition)
            return await _partition(broker, group_id, topic_partition, asked)
        except ApiError as error:
            return _failed(asked, error)

    partitions = await asyncio.gather(*map(acknowledge, topic.partitions))
    return TopicResult(topic_id=topic.topic_id, partitions=tuple(partitions))


async def _partition(
    broker: Broker,
    group_id: GroupId,
    topic_partition: TopicIdPartition,
    asked: AcknowledgedPartition,
) -> PartitionResult:
    if not group_id:
        raise ApiError(ErrorCode.invalid_group_id, "the group id is empty")
    led = await broker.share.partitions.find(group_id, topic_partition)
    errors = await led.acknowledge_deliveries(asked.deliveries)
    return PartitionResult(
        partition_index=asked.partition_index,
        error_code=ErrorCode.none,
        deliveries=tuple(
            _DONE if error is None else refused(DeliveryResult, error) for error in errors
        ),
    )


def _failed(asked: AcknowledgedPartition, error: ApiError) -> PartitionResult:
    return refused(PartitionResult, error, partition_index=asked.partition_index)
