"""OffsetFetch (9): v1-v10.

The committed offsets of groups. Naming no topics means all with an offset.

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
from collections.abc import Sequence
from dataclasses import replace

from kio.schema.offset_fetch.v10.response import OffsetFetchResponsePartitions
from kio.static.primitive import i64

from ottla.handlers.authorization import DENIED, require
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.group_calls import call_each
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
from ottla.security.acls import Operation, ResourceType

_NO_OFFSET = i64(-1)
_OLDEST = 1
_GROUP_ERROR_SINCE = 2
_TOPIC_IDS_SINCE = 10


async def handle(
    broker: Broker, context: RequestContext, request: OffsetFetchRequest
) -> OffsetFetchResponse:
    require_stable = request.require_stable

    def begin(group: OffsetFetchRequestGroup) -> "Future[OffsetFetchResponseGroup]":
        require(context, Operation.DESCRIBE, ResourceType.GROUP, group.group_id)
        if group.topics is not None:
            group = replace(group, topics=tuple(_split(broker, context, group.topics)[0]))
        return broker.groups.find(group.group_id).submit(
            lambda machine, _: machine.fetch_offsets(group, require_stable=require_stable)
        )

    version = context.api_version
    answers = await call_each(
        request.groups, begin, lambda group, error: _failed(group, error.code, version)
    )
    shown = (
        _shown(broker, context, asked, answer)
        for asked, answer in zip(request.groups, answers, strict=True)
    )
    return OffsetFetchResponse(throttle_time=NO_THROTTLE, groups=tuple(shown))


def _split(
    broker: Broker, context: RequestContext, topics: Sequence[OffsetFetchRequestTopics]
) -> tuple[list[OffsetFetchRequestTopics], list[OffsetFetchResponseTopics]]:
    """The topics that may be described, and refusals for the others."""
    allowed, refused = [], []
    for topic in topics:
        name: str | None = topic.name
        if not name and topic.topic_id is not None:
            name = broker.image.topic_name(topic.topic_id)
        if name is None:
            refused.append(_failed_topic(topic, ErrorCode.unknown_topic_id))
        elif _may_describe(context, name):
            allowed.append(topic)
        else:
            refused.append(_failed_topic(topic, DENIED.code))
    return allowed, refused


def _may_describe(context: RequestContext, topic: str) -> bool:
    return context.access.authorize(Operation.DESCRIBE, ResourceType.TOPIC, topic)


def _shown(
    broker: Broker,
    context: RequestContext,
    asked: OffsetFetchRequestGroup,
    answer: OffsetFetchResponseGroup,
) -> OffsetFetchResponseGroup:
    """Topics that may not be described are omitted, and rejected if they were named."""
    if answer.error_code is not ErrorCode.none:
        return answer
    if asked.topics is None:
        by_id = context.api_version >= _TOPIC_IDS_SINCE
        topics = (
            topic
            for topic in answer.topics
            if _may_describe(context, topic.name) and not (by_id and topic.topic_id is None)
        )
        return replace(answer, topics=tuple(topics))
    return replace(answer, topics=(*answer.topics, *_split(broker, context, asked.topics)[1]))


def error_response(request: OffsetFetchRequest, error: ApiError) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        throttle_time=NO_THROTTLE,
        groups=tuple(_failed(group, error.code) for group in request.groups),
    )


def _failed(
    group: OffsetFetchRequestGroup, code: ErrorCode, version: int = _OLDEST
) -> OffsetFetchResponseGroup:
    """v1 cannot report an error of the group: there the partitions do.

    As in Kafka, COORDINATOR_NOT_AVAILABLE becomes NOT_COORDINATOR: before 3.9, Java consumers fail
    for good on the former here.
    """
    if code is ErrorCode.coordinator_not_available:
        code = ErrorCode.not_coordinator
    topics = group.topics or () if version < _GROUP_ERROR_SINCE else ()
    return OffsetFetchResponseGroup(
        group_id=group.group_id,
        topics=tuple(_failed_topic(topic, code) for topic in topics),
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
