"""AlterReplicaLogDirs (34): v1-v2.

Moves replicas of this broker to other log directories of it (KIP-113). The answer comes when the
move has begun; DescribeLogDirs shows its progress.

v2  flexible
"""

from collections.abc import Callable

from kio.schema.alter_replica_log_dirs.v2.request import AlterReplicaLogDirsRequest
from kio.schema.alter_replica_log_dirs.v2.response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from kio.schema.types import TopicName
from kio.static.primitive import i32

from ottla.handlers.authorization import require_cluster
from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.protocol.topics import TopicPartition
from ottla.security.acls import Operation


def handle(
    broker: Broker, context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    require_cluster(context, Operation.ALTER)

    def move(topic_partition: TopicPartition, path: str) -> ErrorCode:
        try:
            broker.directory_moves.request(topic_partition, path)
        except ApiError as error:
            return error.code
        return ErrorCode.none

    return _response(request, move)


def error_response(
    request: AlterReplicaLogDirsRequest, error: ApiError
) -> AlterReplicaLogDirsResponse:
    return _response(request, lambda *_: error.code)


def _response(
    request: AlterReplicaLogDirsRequest, outcome: Callable[[TopicPartition, str], ErrorCode]
) -> AlterReplicaLogDirsResponse:
    """Of a partition that is named twice, the last directory counts."""
    paths = {
        TopicPartition(topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for topic_partition, path in paths.items():
        results.setdefault(topic_partition.topic, []).append(
            AlterReplicaLogDirPartitionResult(
                partition_index=i32(topic_partition.partition),
                error_code=outcome(topic_partition, path),
            )
        )
    return AlterReplicaLogDirsResponse(
        throttle_time=NO_THROTTLE,
        results=tuple(
            AlterReplicaLogDirTopicResult(topic_name=TopicName(name), partitions=tuple(partitions))
            for name, partitions in results.items()
        ),
    )
