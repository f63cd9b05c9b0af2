"""ListOffsets (2): v1-v11.

The offset for a timestamp, or for a special negative one. Nothing past the high watermark is found,
or past the last stable offset for `read_committed`. For a debugging consumer (replica id -2)
followers answer as well, and up to the log end.

v2   isolation level; throttle time
v4   leader epochs are checked and told (KIP-320)
v5   OFFSET_NOT_AVAILABLE until a new leader knows what is committed (KIP-207)
v6   flexible
v7   the record with the largest timestamp (-3, KIP-734)
v8   the earliest offset on local disks (-4, KIP-405)
v9   the latest tiered offset (-5, KIP-1005); none, there is no tiered storage
v10  a timeout for remote lookups
v11  the earliest offset that waits to be tiered (-6, KIP-1023); none
"""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Container

from kio.schema.list_offsets.v11.request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
)
from kio.schema.list_offsets.v11.response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kio.schema.types import TopicName
from kio.static.primitive import i32, i64

from ottla.handlers.authorization import DENIED, denied_topics
from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.replication.partition import Partition
from ottla.security.acls import Operation
from ottla.storage.errors import StorageError
from ottla.storage.reading import FoundTimestamp

logger = logging.getLogger(__name__)

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
# The version from which on these are supported.
_MEANT_SINCE = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
READ_COMMITTED = 1
CONSUMER = -1
DEBUGGING_CONSUMER = -2

_NOT_AVAILABLE_SINCE = 5

Find = Callable[[TopicName, ListOffsetsPartition], ListOffsetsPartitionResponse]


def handle(
    broker: Broker, context: RequestContext, request: ListOffsetsRequest
) -> ListOffsetsResponse | Awaitable[ListOffsetsResponse]:
    """Runs in a thread for timestamps, which are looked up in files."""
    version = context.api_version
    denied = denied_topics(context, Operation.DESCRIBE, (topic.name for topic in request.topics))
    if any(_reads_files(each.timestamp) for topic in request.topics for each in topic.partitions):
        return broker.process.loop.run_in_executor(
            broker.process.executor, _answer, broker, request, version, denied
        )
    return _answer(broker, request, version, denied)


def error_response(request: ListOffsetsRequest, error: ApiError) -> ListOffsetsResponse:
    return _response(request, lambda _, asked: _failed(asked, error.code))


def _reads_files(timestamp: int) -> bool:
    return timestamp >= 0 or timestamp == MAX_TIMESTAMP


def _answer(
    broker: Broker, request: ListOffsetsRequest, version: int, denied: Container[str]
) -> ListOffsetsResponse:
    asked_for = Counter(
        (topic.name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    )

    def find(topic: TopicName, asked: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        try:
            if topic in denied:
                return _failed(asked, DENIED.code)
            if asked_for[topic, asked.partition_index] > 1:
                raise ApiError(ErrorCode.invalid_request, "a partition is named more than once")
            _validate_meaning(asked.timestamp, version)
            partition = broker.replicas.find_in_epoch(
                topic,
                asked.partition_index,
                asked.current_leader_epoch,
                follower=request.replica_id == DEBUGGING_CONSUMER,
            )
            isolation = request.isolation_level if request.replica_id == CONSUMER else None
            return _find(partition, asked, isolation)
        except ApiError as error:
            if error.code is ErrorCode.offset_not_available and version < _NOT_AVAILABLE_SINCE:
                return _failed(asked, ErrorCode.leader_not_available)
            return _failed(asked, error.code)
        except (OSError, StorageError) as error:
            logger.error("cannot look up offsets of %s-%s: %s", topic, asked.partition_index, error)
            return _failed(asked, ErrorCode.kafka_storage_error)

    return _response(request, find)


def _response(request: ListOffsetsRequest, find: Find) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(find(topic.name, asked) for asked in topic.partitions),
            )
            for topic in request.topics
        ),
    )


def _validate_meaning(timestamp: int, version: int) -> None:
    if timestamp in (LATEST, EARLIEST) or timestamp >= 0:
        return
    since = _MEANT_SINCE.get(timestamp)
    if since is None or version < since:
        raise ApiError(
            ErrorCode.unsupported_version, f"timestamp {timestamp} means nothing in v{version}"
        )


def _find(
    partition: Partition, asked: ListOffsetsPartition, isolation_level: int | None
) -> ListOffsetsPartitionResponse:
    """Without an isolation level, up to the log end."""
    log = partition.log
    limit = log.log_end_offset if isolation_level is None else log.high_watermark
    if isolation_level == READ_COMMITTED:
        limit = log.last_stable_offset(limit)
    timestamp = asked.timestamp
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = log.log_start_offset
        return _found(asked, start, -1, log.leader_epochs.epoch_for_offset(start))
    leader = partition.leader
    if isolation_level is not None and leader is not None and leader.is_behind_its_epoch:
        raise ApiError(ErrorCode.offset_not_available, "the leader is new; try again")
    if timestamp == LATEST:
        return _found(asked, limit, -1, partition.leader_epoch)
    if timestamp == MAX_TIMESTAMP:
        return _found_record(asked, log.offset_of_max_timestamp(), limit)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return _found(asked, -1, -1, -1)
    return _found_record(asked, log.offset_for_timestamp(timestamp), limit)


def _found_record(
    asked: ListOffsetsPartition, found: FoundTimestamp | None, limit: int
) -> ListOffsetsPartitionResponse:
    if found is None or found.offset >= limit:
        return _found(asked, -1, -1, -1)
    return _found(asked, found.offset, found.timestamp, found.leader_epoch)


def _found(
    asked: ListOffsetsPartition, offset: int, timestamp: int, leader_epoch: int
) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        error_code=ErrorCode.none,
        timestamp=i64(timestamp),
        offset=i64(offset),
        leader_epoch=i32(leader_epoch),
    )


def _failed(asked: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=code)
