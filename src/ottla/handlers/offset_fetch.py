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
from collections.abc import Awaitable, Iterator
from dataclasses import replace
from typing import cast

from kio.schema.offset_fetch.v9 import request as by_name_request
from kio.schema.offset_fetch.v9 import response as by_name_response
from kio.schema.offset_fetch.v10.response import OffsetFetchResponsePartitions
from kio.static.primitive import i64

from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.group_calls import call_each, submit
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopics,
)
from ottla.protocol.times import NO_THROTTLE

_GROUP_ERROR_SINCE = 2
_TOPIC_IDS_SINCE = 10
_NO_OFFSET = i64(-1)

_ByName = by_name_response.OffsetFetchResponseGroup


def handle_offset_fetch(
    broker: Broker, context: RequestContext, request: OffsetFetchRequest
) -> Awaitable[OffsetFetchResponse]:
    if context.api_version >= _TOPIC_IDS_SINCE:
        return _fetch_by_id(broker, request)
    return _fetch_by_name(broker, request, context.api_version)


def error_response(request: OffsetFetchRequest, error: ApiError) -> OffsetFetchResponse:
    return _response([_failed(group, error.code) for group in request.groups])


async def _fetch_by_name(
    broker: Broker, request: OffsetFetchRequest, api_version: int
) -> OffsetFetchResponse:
    answers = await _fetch(broker, request)
    if api_version < _GROUP_ERROR_SINCE:
        # This version has no place for an error but at each partition that was asked for.
        answers = [
            _failed(group, answer.error_code, with_partitions=True) if answer.error_code else answer
            for group, answer in zip(request.groups, answers, strict=True)
        ]
    return _response(answers)


async def _fetch_by_id(broker: Broker, request: OffsetFetchRequest) -> OffsetFetchResponse:
    named = replace(request, groups=tuple(_with_names(broker, group) for group in request.groups))
    answers = await _fetch(broker, named)
    return _response(
        [
            _with_ids(broker, group, answer)
            for group, answer in zip(request.groups, answers, strict=True)
        ]
    )


async def _fetch(broker: Broker, request: OffsetFetchRequest) -> list[OffsetFetchResponseGroup]:
    def begin(group: OffsetFetchRequestGroup) -> "Future[_ByName]":
        # With names in it, the group has all that version 9 has.
        by_name = cast("by_name_request.OffsetFetchRequestGroup", group)
        return submit(
            broker,
            group.group_id,
            lambda machine, _: machine.fetch_offsets(
                by_name, require_stable=request.require_stable
            ),
        )

    answers = await call_each(request.groups, begin, _failed_by_name)
    return cast("list[OffsetFetchResponseGroup]", answers)


def _failed_by_name(group: OffsetFetchRequestGroup, error: ApiError) -> _ByName:
    return _ByName(group_id=group.group_id, topics=(), error_code=error.code)


def _with_names(broker: Broker, group: OffsetFetchRequestGroup) -> OffsetFetchRequestGroup:
    """Topics whose id is not known are left out."""
    if group.topics is None:
        return group
    return replace(
        group,
        topics=tuple(
            replace(topic, name=name)
            for topic in group.topics
            if (name := _name_of(broker, topic)) is not None
        ),
    )


def _name_of(broker: Broker, topic: OffsetFetchRequestTopics) -> str | None:
    return None if topic.topic_id is None else broker.image.topic_name(topic.topic_id)


def _with_ids(
    broker: Broker, asked: OffsetFetchRequestGroup, answer: OffsetFetchResponseGroup
) -> OffsetFetchResponseGroup:
    return OffsetFetchResponseGroup(
        group_id=asked.group_id,
        topics=(*_identified(broker, answer), *_unknown_topics(broker, asked, answer)),
        error_code=answer.error_code,
    )


def _identified(
    broker: Broker, answer: OffsetFetchResponseGroup
) -> Iterator[OffsetFetchResponseTopics]:
    """A topic that has gone meanwhile has no id to be called by."""
    for topic in answer.topics:
        topic_id = broker.image.topic_id(topic.name)
        if topic_id is not None:
            yield OffsetFetchResponseTopics(
                name=topic.name, topic_id=topic_id, partitions=topic.partitions
            )


def _unknown_topics(
    broker: Broker, asked: OffsetFetchRequestGroup, answer: OffsetFetchResponseGroup
) -> Iterator[OffsetFetchResponseTopics]:
    if answer.error_code:
        return
    for topic in asked.topics or ():
        if _name_of(broker, topic) is None:
            yield _failed_topic(topic, ErrorCode.unknown_topic_id)


def _response(groups: list[OffsetFetchResponseGroup]) -> OffsetFetchResponse:
    return OffsetFetchResponse(throttle_time=NO_THROTTLE, groups=tuple(groups))


def _failed(
    group: OffsetFetchRequestGroup, code: ErrorCode, *, with_partitions: bool = False
) -> OffsetFetchResponseGroup:
    topics = (group.topics or ()) if with_partitions else ()
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
                partition_index=index,
                committed_offset=_NO_OFFSET,
                metadata="",
                error_code=code,
            )
            for index in topic.partition_indexes
        ),
    )
