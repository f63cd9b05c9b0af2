"""AlterReplicaLogDirs (34): v1-v2.

Moves replicas between log directories of this broker (KIP-113). Answered once the move has begun
durably; DescribeLogDirs shows its progress.

v2  flexible
"""

import asyncio

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


async def handle(
    broker: Broker, context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    require_cluster(context, Operation.ALTER)

    async def move(topic_partition: TopicPartition, path: str) -> ErrorCode:
        try:
            await broker.directory_moves.request(topic_partition, path)
        except ApiError as error:
            return error.code
        return ErrorCode.none

    paths = _paths(request)
    outcomes = await asyncio.gather(*(move(*wanted) for wanted in paths.items()))
    return _response(dict(zip(paths, outcomes, strict=True)))


def error_response(
    request: AlterReplicaLogDirsRequest, error: ApiError
) -> AlterReplicaLogDirsResponse:
    return _response(dict.fromkeys(_paths(request), error.code))


def _paths(request: AlterReplicaLogDirsRequest) -> dict[TopicPartition, str]:
    """If a partition is named twice, the last directory counts."""
    return {
        TopicPartition(topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }


def _response(outcomes: dict[TopicPartition, ErrorCode]) -> AlterReplicaLogDirsResponse:
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for topic_partition, code in outcomes.items():
        results.setdefault(topic_partition.topic, []).append(
            AlterReplicaLogDirPartitionResult(
                partition_index=i32(topic_partition.partition),
                error_code=code,
            )
        )
    return AlterReplicaLogDirsResponse(
        throttle_time=NO_THROTTLE,
        results=tuple(
            AlterReplicaLogDirTopicResult(topic_name=TopicName(name), partitions=tuple(partitions))
            for name, partitions in results.items()
        ),
    )
