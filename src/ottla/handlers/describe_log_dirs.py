"""DescribeLogDirs (35): v1-v5.

The content of each log directory; no topics means all of them.

v2  flexible
v3  an error for the whole request
v4  the size of the volume and what is free on it (KIP-827)
v5  cordoned directories (KIP-1066); Ottla's own: damaged replicas
"""

from collections.abc import Iterable

from kio.schema.describe_log_dirs.v5.request import DescribeLogDirsRequest
from kio.schema.describe_log_dirs.v5.response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kio.schema.types import TopicName
from kio.static.primitive import i32, i64

from ottla.handlers.authorization import require_cluster
from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.describe_log_dirs import (
    WHOLE_LOG,
    DamagedOffsets,
    DescribeLogDirsResponse,
)
from ottla.protocol.times import NO_THROTTLE
from ottla.protocol.topics import CLUSTER_METADATA_TOPIC, TopicPartition
from ottla.security.acls import Operation
from ottla.storage.directory_info import DirectoryInfo
from ottla.storage.log import PartitionLog
from ottla.storage.manager import LogManager


def handle(
    broker: Broker, context: RequestContext, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    require_cluster(context, Operation.DESCRIBE)
    wanted = None
    if request.topics is not None:
        wanted = {
            TopicPartition(topic.topic, index)
            for topic in request.topics
            for index in topic.partitions
        }
    return DescribeLogDirsResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        results=tuple(_directory(directory, wanted) for directory in broker.logs.directories()),
        damage=tuple(
            stretch
            for stretch in _damage(broker.logs)
            if wanted is None or TopicPartition(stretch.topic, stretch.partition_index) in wanted
        ),
    )


def _directory(
    directory: DirectoryInfo, wanted: set[TopicPartition] | None
) -> DescribeLogDirsResult:
    if not directory.online:
        return DescribeLogDirsResult(
            error_code=ErrorCode.kafka_storage_error,
            log_dir=directory.path,
            topics=(),
            is_cordoned=directory.cordoned,
        )
    replicas = [
        (log.topic_partition, _partition(log, None))
        for log in directory.logs
        if log.topic_partition.topic != CLUSTER_METADATA_TOPIC
    ]
    replicas += [
        (move.future.topic_partition, _partition(move.future, move.source))
        for move in directory.moves
    ]
    chosen = [replica for replica in replicas if wanted is None or replica[0] in wanted]
    return DescribeLogDirsResult(
        error_code=ErrorCode.none,
        log_dir=directory.path,
        topics=tuple(_topics(chosen)),
        total_bytes=i64(directory.total_bytes),
        usable_bytes=i64(directory.usable_bytes),
        is_cordoned=directory.cordoned,
    )


def _damage(logs: LogManager) -> Iterable[DamagedOffsets]:
    for log in logs.damaged:
        for damage in log.damage:
            last_offset = i64(damage.next_offset - 1)
            yield _damaged(log.topic_partition, i64(damage.first_offset), last_offset)
    for topic_partition in logs.corrupt.all:
        yield _damaged(topic_partition, WHOLE_LOG, WHOLE_LOG)


def _damaged(
    topic_partition: TopicPartition, first_offset: i64, last_offset: i64
) -> DamagedOffsets:
    return DamagedOffsets(
        topic=TopicName(topic_partition.topic),
        partition_index=i32(topic_partition.partition),
        first_offset=first_offset,
        last_offset=last_offset,
    )


def _topics(
    replicas: Iterable[tuple[TopicPartition, DescribeLogDirsPartition]],
) -> Iterable[DescribeLogDirsTopic]:
    by_topic: dict[str, list[DescribeLogDirsPartition]] = {}
    for topic_partition, replica in sorted(replicas, key=lambda pair: pair[0]):
        by_topic.setdefault(topic_partition.topic, []).append(replica)
    for name, partitions in by_topic.items():
        yield DescribeLogDirsTopic(name=TopicName(name), partitions=tuple(partitions))


def _partition(log: PartitionLog, source: PartitionLog | None) -> DescribeLogDirsPartition:
    """A moving replica has its lag behind the log that it is copied from."""
    ahead = log.high_watermark if source is None else source.log_end_offset
    return DescribeLogDirsPartition(
        partition_index=i32(log.topic_partition.partition),
        partition_size=i64(log.size),
        offset_lag=i64(max(ahead - log.log_end_offset, 0)),
        is_future_key=source is not None,
    )
