"""OffsetCommit (8): v2-v10.

Stores how far a group has read. Topics and partitions that do not exist are refused one by one.

v3   throttle time in the response
v5   no retention time: the broker's holds (KIP-211)
v6   the leader epoch of the last record that was read (KIP-320)
v7   group instance id (KIP-345)
v8   flexible
v9   members of consumer groups (KIP-848)
v10  topic ids for names (KIP-516)
"""

from collections.abc import Awaitable

from kio.schema.offset_commit.v10.response import OffsetCommitResponsePartition

from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.group_calls import call, caller_of
from ottla.protocol.errors import ApiError
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponseTopic,
)
from ottla.protocol.times import NO_THROTTLE


def handle_offset_commit(
    broker: Broker, context: RequestContext, request: OffsetCommitRequest
) -> OffsetCommitResponse | Awaitable[OffsetCommitResponse]:
    caller = caller_of(context)
    return call(
        broker,
        request.group_id,
        lambda machine, now_ms: machine.commit_offsets(request, caller, now_ms),
    )


def error_response(request: OffsetCommitRequest, error: ApiError) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    OffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=error.code
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )
