"""WriteTxnMarkers (27): v1-v2.

Ends transactions in the partitions that this broker leads. Sent by the transaction coordinator of
another broker, or by an administrator who ends a hanging transaction. A marker that is not
committed soon delays the response for the others only up to a limit; the sender repeats it.

v1  flexible
v2  the version of transactions that the producer speaks (KIP-890)
"""

import asyncio
from typing import Final

from kio.schema.types import TopicName
from kio.schema.write_txn_markers.v2.request import WritableTxnMarker, WriteTxnMarkersRequest
from kio.schema.write_txn_markers.v2.response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from kio.static.primitive import i32

from ottla.handlers.broker import Broker, RequestContext
from ottla.machine.transactional import TransactionMarker
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition

COMMIT_WAIT_S: Final = 2.0


async def handle(
    broker: Broker, _: RequestContext, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse:
    results = await asyncio.gather(*(_write(broker, marker) for marker in request.markers))
    return WriteTxnMarkersResponse(markers=tuple(results))


def error_response(request: WriteTxnMarkersRequest, error: ApiError) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=tuple(
            _result(marker, dict.fromkeys(_topic_partitions(marker), error.code))
            for marker in request.markers
        )
    )


async def _write(broker: Broker, marker: WritableTxnMarker) -> WritableTxnMarkerResult:
    topic_partitions = _topic_partitions(marker)
    codes = await asyncio.gather(
        *(_write_one(broker, topic_partition, marker) for topic_partition in topic_partitions)
    )
    return _result(marker, dict(zip(topic_partitions, codes, strict=True)))


async def _write_one(
    broker: Broker, topic_partition: TopicPartition, marker: WritableTxnMarker
) -> ErrorCode:
    content = TransactionMarker(
        marker.producer_id,
        marker.producer_epoch,
        marker.coordinator_epoch,
        marker.transaction_result,
    )
    try:
        async with asyncio.timeout(COMMIT_WAIT_S):
            await broker.transactions.markers.write(
                topic_partition, content, marker.transaction_version
            )
    except ApiError as error:
        return error.code
    except TimeoutError:
        return ErrorCode.request_timed_out
    return ErrorCode.none


def _topic_partitions(marker: WritableTxnMarker) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, partition)
        for topic in marker.topics
        for partition in topic.partition_indexes
    ]


def _result(
    marker: WritableTxnMarker, codes: dict[TopicPartition, ErrorCode]
) -> WritableTxnMarkerResult:
    return WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=tuple(
            WritableTxnMarkerTopicResult(
                name=TopicName(topic.name),
                partitions=tuple(
                    WritableTxnMarkerPartitionResult(
                        partition_index=i32(partition),
                        error_code=codes[TopicPartition(topic.name, partition)],
                    )
                    for partition in topic.partition_indexes
                ),
            )
            for topic in marker.topics
        ),
    )
