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
from dataclasses import replace
from typing import cast

from kio.schema.offset_commit.v9 import request as by_name_request
from kio.schema.offset_commit.v9 import response as by_name_response
from kio.schema.offset_commit.v10.response import OffsetCommitResponsePartition

from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.group_calls import call, caller_of
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponseTopic,
)
from ottla.protocol.times import NO_THROTTLE

_TOPIC_IDS_SINCE = 10
_ByName = by_name_response.OffsetCommitResponse


def handle_offset_commit(
    broker: Broker, context: RequestContext, request: OffsetCommitRequest
) -> _ByName | Awaitable[_ByName | OffsetCommitResponse]:
    if context.api_version < _TOPIC_IDS_SINCE:
        return _commit(broker, context, request)
    return _commit_by_id(broker, context, request)


def error_response(request: OffsetCommitRequest, error: ApiError) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(_failed(topic, error.code) for topic in request.topics),
    )


def _commit(
    broker: Broker, context: RequestContext, request: OffsetCommitRequest
) -> _ByName | Awaitable[_ByName]:
    caller = caller_of(context)
    # With names in it, the request has all that version 9 has.
    by_name = cast("by_name_request.OffsetCommitRequest", request)
    return call(
        broker,
        request.group_id,
        lambda machine, now_ms: machine.commit_offsets(by_name, caller, now_ms),
    )


async def _commit_by_id(
    broker: Broker, context: RequestContext, request: OffsetCommitRequest
) -> OffsetCommitResponse:
    names = [_name_of(broker, topic) for topic in request.topics]
    known = tuple(
        replace(topic, name=name)
        for topic, name in zip(request.topics, names, strict=True)
        if name is not None
    )
    committed = _commit(broker, context, replace(request, topics=known))
    if not isinstance(committed, _ByName):
        committed = await committed
    answers = iter(committed.topics)
    return OffsetCommitResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            _failed(topic, ErrorCode.unknown_topic_id)
            if name is None
            else _answered(topic, next(answers))
            for topic, name in zip(request.topics, names, strict=True)
        ),
    )


def _name_of(broker: Broker, topic: OffsetCommitRequestTopic) -> str | None:
    return None if topic.topic_id is None else broker.image.topic_name(topic.topic_id)


def _answered(
    topic: OffsetCommitRequestTopic, answer: by_name_response.OffsetCommitResponseTopic
) -> OffsetCommitResponseTopic:
    partitions = cast("tuple[OffsetCommitResponsePartition, ...]", answer.partitions)
    return OffsetCommitResponseTopic(
        name=answer.name, topic_id=topic.topic_id, partitions=partitions
    )


def _failed(topic: OffsetCommitRequestTopic, code: ErrorCode) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(
            OffsetCommitResponsePartition(
                partition_index=partition.partition_index, error_code=code
            )
            for partition in topic.partitions
        ),
    )
