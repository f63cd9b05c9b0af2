"""DescribeProducers (61): v0.

The producers that a partition's log remembers, and where their open transactions begin (KIP-664).
"""

from collections.abc import Callable

from kio.schema.describe_producers.v0.request import DescribeProducersRequest
from kio.schema.describe_producers.v0.response import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from kio.schema.types import ProducerId
from kio.static.primitive import i32, i64

from ottla.handlers.authorization import DENIED, denied_topics
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.refusals import refused
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.protocol.topic_names import is_topic_name
from ottla.security.acls import Operation
from ottla.storage.producer_entry import ProducerEntry


def handle(
    broker: Broker, context: RequestContext, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    denied = denied_topics(
        context,
        Operation.READ,
        (topic.name for topic in request.topics if is_topic_name(topic.name)),
    )

    def describe(topic: str, index: i32) -> PartitionResponse:
        return _failed(index, DENIED) if topic in denied else _describe(broker, topic, index)

    return _response(request, describe)


def error_response(request: DescribeProducersRequest, error: ApiError) -> DescribeProducersResponse:
    return _response(request, lambda _, index: _failed(index, error))


def _response(
    request: DescribeProducersRequest, describe: Callable[[str, i32], PartitionResponse]
) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            TopicResponse(
                name=topic.name,
                partitions=tuple(describe(topic.name, index) for index in topic.partition_indexes),
            )
            for topic in request.topics
        ),
    )


def _describe(broker: Broker, topic: str, index: i32) -> PartitionResponse:
    try:
        partition = broker.replicas.find_readable(topic, index)
    except ApiError as error:
        return _failed(index, error)
    return PartitionResponse(
        partition_index=index,
        error_code=ErrorCode.none,
        # Copied at once, because a thread expires producers.
        active_producers=tuple(_producer(entry) for entry in list(partition.log.producers)),
    )


def _failed(index: i32, error: ApiError) -> PartitionResponse:
    return refused(PartitionResponse, error, partition_index=index)


def _producer(entry: ProducerEntry) -> ProducerState:
    return ProducerState(
        producer_id=ProducerId(entry.producer_id),
        producer_epoch=i32(entry.producer_epoch),
        last_sequence=i32(entry.last_sequence),
        last_timestamp=i64(entry.last_timestamp),
        coordinator_epoch=i32(entry.coordinator_epoch),
        current_txn_start_offset=i64(entry.transaction_first_offset),
    )
