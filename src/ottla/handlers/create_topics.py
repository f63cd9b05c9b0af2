"""CreateTopics (19): v2-v7.

v4  partition count and replication factor of -1 take the broker's defaults (KIP-464)
v5  flexible; the response has counts and configs (KIP-525)
v6  THROTTLING_QUOTA_EXCEEDED (KIP-599)
v7  topic ids in the response
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreatableTopicResult, CreateTopicsResponse
from kio.static.primitive import i16, i32

from ottla.handlers.authorization import DENIED, split_topics
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.refusals import refused
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import CLUSTER_NAME, Operation, ResourceType


async def handle(
    broker: Broker, context: RequestContext, request: CreateTopicsRequest
) -> CreateTopicsResponse:
    """A client that may not describe a topic's configs may create it, but does not see them."""
    access = context.access
    counts = Counter(topic.name for topic in request.topics)
    allowed: Sequence[CreatableTopic] = request.topics
    denied: Sequence[CreatableTopic] = ()
    if not access.may(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME):
        allowed, denied = split_topics(
            context,
            Operation.CREATE,
            request.topics,
            lambda topic: topic.name if counts[topic.name] == 1 else None,
        )
    response: CreateTopicsResponse = await broker.controller.call(
        replace(request, topics=tuple(allowed)), caller=context.caller(strict_from=6)
    )
    rejected = error_response(replace(request, topics=tuple(denied)), DENIED).topics
    shown = (
        topic
        if access.may(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name)
        else _without_configs(topic)
        for topic in response.topics
    )
    return replace(response, topics=(*shown, *rejected))


def _without_configs(topic: CreatableTopicResult) -> CreatableTopicResult:
    if topic.error_code is not ErrorCode.none:
        return topic
    return replace(
        topic,
        topic_config_error_code=i16(ErrorCode.topic_authorization_failed),
        num_partitions=i32(-1),
        replication_factor=i16(-1),
        configs=(),
    )


def error_response(request: CreateTopicsRequest, error: ApiError) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            refused(CreatableTopicResult, error, name=topic.name) for topic in request.topics
        ),
    )
