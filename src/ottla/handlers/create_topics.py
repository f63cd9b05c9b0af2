"""CreateTopics (19): v2-v7.

v4  partition count and replication factor of -1 take the broker's defaults (KIP-464)
v5  flexible; the response has counts and configs (KIP-525)
v7  topic ids in the response
"""

from collections.abc import Awaitable

from kio.schema.create_topics.v7.request import CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreatableTopicResult, CreateTopicsResponse

from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE


def handle(
    broker: Broker, _: RequestContext, request: CreateTopicsRequest
) -> Awaitable[CreateTopicsResponse]:
    return broker.controller.call(request)


def error_response(request: CreateTopicsRequest, error: ApiError) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            CreatableTopicResult(
                name=topic.name,
                topic_id=None,
                error_code=error.code,
                error_message=error.message,
                configs=None,
            )
            for topic in request.topics
        ),
    )
