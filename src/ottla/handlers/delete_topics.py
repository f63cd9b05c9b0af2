"""DeleteTopics (20): v1-v6.

v4  flexible
v5  error messages
v6  topics by id (KIP-516)
"""

from collections.abc import Awaitable

from kio.schema.delete_topics.v6.request import DeleteTopicsRequest
from kio.schema.delete_topics.v6.response import DeletableTopicResult, DeleteTopicsResponse

from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE


def handle(
    broker: Broker, _: RequestContext, request: DeleteTopicsRequest
) -> Awaitable[DeleteTopicsResponse]:
    return broker.controller.call(request)


def error_response(request: DeleteTopicsRequest, error: ApiError) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        throttle_time=NO_THROTTLE,
        responses=tuple(
            DeletableTopicResult(
                name=topic.name,
                topic_id=topic.topic_id,
                error_code=error.code,
                error_message=error.message,
            )
            for topic in request.topics
        ),
    )
