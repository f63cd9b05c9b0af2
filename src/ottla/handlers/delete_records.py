"""DeleteRecords (21): v0-v2.

Moves the start of a log forward; -1 stands for the high watermark.

v2  flexible
"""

from collections.abc import Awaitable, Callable

from kio.schema.delete_records.v2.request import DeleteRecordsPartition, DeleteRecordsRequest
from kio.schema.delete_records.v2.response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kio.static.primitive import i64

from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.storage.errors import StorageError
from ottla.storage.log import PartitionLog

HIGH_WATERMARK = -1
INVALID_LOW_WATERMARK = i64(-1)

_INTERNAL_TOPIC = ApiError(
    ErrorCode.invalid_topic_exception, "the records of an internal topic are the broker's alone"
)

Delete = Callable[[str, DeleteRecordsPartition], DeleteRecordsPartitionResult]


def handle_delete_records(
    broker: Broker, _: RequestContext, request: DeleteRecordsRequest
) -> Awaitable[DeleteRecordsResponse]:
    """Segments are removed from the disk, so that is done in a thread."""
    return broker.loop.run_in_executor(broker.executor, _answer, broker, request)


def error_response(request: DeleteRecordsRequest, error: ApiError) -> DeleteRecordsResponse:
    return _response(request, lambda _, asked: _failed(asked, error))


def _answer(broker: Broker, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    def delete(topic: str, asked: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
        try:
            partition = broker.replicas.find(topic, asked.partition_index)
            if partition.is_internal:
                raise _INTERNAL_TOPIC
            log = partition.log
            _delete(log, asked.offset)
        except ApiError as error:
            return _failed(asked, error)
        except StorageError as error:
            return _failed(asked, ApiError(ErrorCode.kafka_storage_error, str(error)))
        return DeleteRecordsPartitionResult(
            partition_index=asked.partition_index,
            low_watermark=i64(log.log_start_offset),
            error_code=ErrorCode.none,
        )

    return _response(request, delete)


def _response(request: DeleteRecordsRequest, delete: Delete) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=tuple(delete(topic.name, asked) for asked in topic.partitions),
            )
            for topic in request.topics
        ),
    )


def _delete(log: PartitionLog, offset: int) -> None:
    if offset == HIGH_WATERMARK:
        offset = log.high_watermark
    if not 0 <= offset <= log.high_watermark:
        raise ApiError(
            ErrorCode.offset_out_of_range,
            f"offset {offset} is not between 0 and the high watermark {log.high_watermark}",
        )
    if offset > log.log_start_offset:
        log.delete_records_before(offset)


def _failed(asked: DeleteRecordsPartition, error: ApiError) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=asked.partition_index,
        low_watermark=INVALID_LOW_WATERMARK,
        error_code=error.code,
    )
