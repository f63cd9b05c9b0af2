"""DescribeTopicPartitions (75): v0 (KIP-966).

Topics in name order, page by page: a cursor tells where the next page starts.
"""

from collections.abc import Iterator
from dataclasses import replace

from kio.schema.describe_topic_partitions.v0.request import DescribeTopicPartitionsRequest
from kio.schema.describe_topic_partitions.v0.response import (
    Cursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from kio.schema.types import TopicName
from kio.static.primitive import i32

from ottla.controller.image import MetadataImage, TopicImage
from ottla.controller.records import PartitionRecord
from ottla.handlers.authorization import DENIED, authorized_operations
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.cluster_view import Reachable, addresses
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.protocol.topic_names import validate_topic_name
from ottla.protocol.topics import INTERNAL_TOPICS
from ottla.security.acls import Operation, ResourceType

PARTITIONS_MAX = 2000


def handle(
    broker: Broker, context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    if request.cursor is not None and request.cursor.partition_index < 0:
        raise ApiError(ErrorCode.invalid_request, "the cursor has a negative partition")
    if request.response_partition_limit < 1:
        raise ApiError(ErrorCode.invalid_request, "the limit of partitions must be one or more")
    image = broker.image
    reachable = Reachable(image, addresses(image, context.listener_name))
    left = min(request.response_partition_limit, PARTITIONS_MAX)
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    denied: list[DescribeTopicPartitionsResponseTopic] = []
    for name, first_index in _wanted(image, request):
        if not context.access.may(Operation.DESCRIBE, ResourceType.TOPIC, name):
            if request.topics:
                denied.append(_failed_topic(name, DENIED.code))
            continue
        topic = image.topics.get(name)
        if topic is None:
            topics.append(
                replace(
                    _failed_topic(name, _unknown_error(name)),
                    topic_authorized_operations=authorized_operations(
                        context, ResourceType.TOPIC, name
                    ),
                )
            )
            continue
        if not left:
            return _page(topics + denied, Cursor(topic_name=name, partition_index=i32(first_index)))
        indexes = range(first_index, min(first_index + left, len(topic.partitions)))
        topics.append(_topic(context, topic, indexes, reachable))
        left -= len(indexes)
        if indexes.stop < len(topic.partitions):
            return _page(
                topics + denied, Cursor(topic_name=name, partition_index=i32(indexes.stop))
            )
    return _page(topics + denied, None)


def error_response(
    request: DescribeTopicPartitionsRequest, error: ApiError
) -> DescribeTopicPartitionsResponse:
    return _page([_failed_topic(topic.name, error.code) for topic in request.topics], None)


def _wanted(
    image: MetadataImage, request: DescribeTopicPartitionsRequest
) -> Iterator[tuple[TopicName, int]]:
    """Sorted names, each with the partition to start at; naming none means all."""
    names = {topic.name for topic in request.topics} or {
        topic.name for topic in image.topics.values()
    }
    cursor = request.cursor
    for name in sorted(names):
        if cursor is None or name > cursor.topic_name:
            yield name, 0
        elif name == cursor.topic_name:
            yield name, cursor.partition_index


def _topic(
    context: RequestContext,
    topic: TopicImage,
    indexes: range,
    reachable: Reachable,
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.none,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=tuple(_partition(topic.partitions[index], reachable) for index in indexes),
        topic_authorized_operations=authorized_operations(context, ResourceType.TOPIC, topic.name),
    )


def _partition(
    partition: PartitionRecord, reachable: Reachable
) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.none,
        partition_index=partition.partition_id,
        leader_id=reachable.leader(partition),
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        eligible_leader_replicas=partition.eligible_leader_replicas or (),
        last_known_elr=partition.last_known_elr or (),
        offline_replicas=reachable.offline(partition.replicas),
    )


def _failed_topic(name: TopicName, code: ErrorCode) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=code,
        name=name,
        topic_id=None,
        is_internal=name in INTERNAL_TOPICS,
        partitions=(),
    )


def _unknown_error(name: str) -> ErrorCode:
    try:
        validate_topic_name(name)
    except ApiError as error:
        return error.code
    return ErrorCode.unknown_topic_or_partition


def _page(
    topics: list[DescribeTopicPartitionsResponseTopic], next_cursor: Cursor | None
) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        throttle_time=NO_THROTTLE, topics=tuple(topics), next_cursor=next_cursor
    )
