"""OffsetFetch (9): v1-v10.

How far groups have read. No topics named means all that have an offset.

v2   all topics; an error for the group
v3   throttle time in the response
v5   leader epochs (KIP-320)
v6   flexible
v7   only offsets that no open transaction can change (KIP-447)
v8   many groups in one request (KIP-709)
v9   member id and epoch of a consumer group (KIP-848)
v10  topic ids for names (KIP-516)
"""

from asyncio import Future

from kio.schema.offset_fetch.v10.response import OffsetFetchResponsePartitions
from kio.static.primitive import i64

from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.group_calls import call_each, submit
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopics,
)
from ottla.protocol.times import NO_THROTTLE

_NO_OFFSET = i64(-1)


async def handle(
    broker: Broker, _: RequestContext, request: OffsetFetchRequest
) -> OffsetFetchResponse:
    require_stable = request.require_stable

    def begin(group: OffsetFetchRequestGroup) -> "Future[OffsetFetchResponseGroup]":
        return submit(
            broker,
            group.group_id,
            lambda machine, _: machine.fetch_offsets(group, require_stable=require_stable),
        )

    answers = await call_each(
        request.groups, begin, lambda group, error: _failed(group, error.code)
    )
    return OffsetFetchResponse(throttle_time=NO_THROTTLE, groups=tuple(answers))


def error_response(request: OffsetFetchRequest, error: ApiError) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        throttle_time=NO_THROTTLE,
        groups=tuple(_failed(group, error.code) for group in request.groups),
    )


def _failed(group: OffsetFetchRequestGroup, code: ErrorCode) -> OffsetFetchResponseGroup:
    """The partitions are there for v1, which has no place for an error of the group."""
    return OffsetFetchResponseGroup(
        group_id=group.group_id,
        topics=tuple(_failed_topic(topic, code) for topic in group.topics or ()),
        error_code=code,
    )


def _failed_topic(topic: OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(
            OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=_NO_OFFSET, metadata="", error_code=code
            )
            for index in topic.partition_indexes
        ),
    )
