"""CreatePartitions (37): v0-v3.

v2  flexible
"""

from collections.abc import Awaitable

from kio.schema.create_partitions.v3.request import CreatePartitionsRequest
from kio.schema.create_partitions.v3.response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)

from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE


def handle(
    broker: Broker, _: RequestContext, request: CreatePartitionsRequest
) -> Awaitable[CreatePartitionsResponse]:
    return broker.controller.call(request)


def error_response(request: CreatePartitionsRequest, error: ApiError) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        throttle_time=NO_THROTTLE,
        results=tuple(
            CreatePartitionsTopicResult(
                name=topic.name, error_code=error.code, error_message=error.message
            )
            for topic in request.topics
        ),
    )
