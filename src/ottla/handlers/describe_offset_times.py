"""DescribeOffsetTimes (10001): v0, an API of Ottla's own.

The high watermarks of partitions that this broker leads, and when records were written.
"""

from collections.abc import Callable
from functools import partial

from kio.static.primitive import i64

from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.share_calls import NO_TOPIC
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages.describe_offset_times import (
    AskedPartition,
    AskedTopic,
    DescribeOffsetTimesRequest,
    DescribeOffsetTimesResponse,
    PartitionTimes,
    TopicTimes,
)
from ottla.protocol.times import NO_THROTTLE
from ottla.replication.record_times import first_unread_ms


async def handle(
    broker: Broker, _: RequestContext, request: DescribeOffsetTimesRequest
) -> DescribeOffsetTimesResponse:
    """Runs in a thread, because it may wait for the disk."""
    return await broker.process.loop.run_in_executor(
        broker.process.executor, _response, request, partial(_partition, broker)
    )


def error_response(
    request: DescribeOffsetTimesRequest, error: ApiError
) -> DescribeOffsetTimesResponse:
    return _response(request, lambda _, asked: _failed(asked, error))


def _response(
    request: DescribeOffsetTimesRequest,
    look_up: Callable[[AskedTopic, AskedPartition], PartitionTimes],
) -> DescribeOffsetTimesResponse:
    return DescribeOffsetTimesResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            TopicTimes(
                topic_id=topic.topic_id,
                partitions=tuple(look_up(topic, each) for each in topic.partitions),
            )
            for topic in request.topics
        ),
    )


def _partition(broker: Broker, topic: AskedTopic, asked: AskedPartition) -> PartitionTimes:
    try:
        partition = broker.replicas.find(topic.topic_id or NO_TOPIC, asked.partition_index)
    except ApiError as error:
        return _failed(asked, error)
    return PartitionTimes(
        partition_index=asked.partition_index,
        error_code=ErrorCode.none,
        high_watermark=i64(partition.log.high_watermark),
        timestamps=tuple(i64(first_unread_ms(partition, offset)) for offset in asked.offsets),
    )


def _failed(asked: AskedPartition, error: ApiError) -> PartitionTimes:
    return PartitionTimes(partition_index=asked.partition_index, error_code=error.code)
