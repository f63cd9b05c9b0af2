"""CreatePartitions (37): v0-v3.

v2  flexible
v3  THROTTLING_QUOTA_EXCEEDED (KIP-599)
"""

from dataclasses import replace

from kio.schema.create_partitions.v3.request import CreatePartitionsRequest
from kio.schema.create_partitions.v3.response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)

from ottla.handlers.authorization import DENIED, split_topics
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.refusals import refused
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation


async def handle(
    broker: Broker, context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    allowed, denied = split_topics(
        context, Operation.ALTER, request.topics, lambda topic: topic.name
    )
    response: CreatePartitionsResponse = await broker.controller.call(
        replace(request, topics=tuple(allowed)), caller=context.caller(strict_from=3)
    )
    rejected = error_response(replace(request, topics=tuple(denied)), DENIED)
    return replace(response, results=(*response.results, *rejected.results))


def error_response(request: CreatePartitionsRequest, error: ApiError) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        throttle_time=NO_THROTTLE,
        results=tuple(
            refused(CreatePartitionsTopicResult, error, name=topic.name) for topic in request.topics
        ),
    )
