"""DeleteTopics (20): v1-v6.

v4  flexible
v5  error messages, THROTTLING_QUOTA_EXCEEDED (KIP-599)
v6  topics by id (KIP-516)
"""

from collections import Counter
from dataclasses import replace

from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.delete_topics.v6.response import DeletableTopicResult, DeleteTopicsResponse

from ottla.handlers.authorization import DENIED
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.refusals import refused
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import CLUSTER_NAME, Operation, ResourceType
from ottla.security.authorizer import Access


async def handle(
    broker: Broker, context: RequestContext, request: DeleteTopicsRequest
) -> DeleteTopicsResponse:
    access = context.access
    if access.may(Operation.DELETE, ResourceType.CLUSTER, CLUSTER_NAME):
        response: DeleteTopicsResponse = await broker.controller.call(
            request, caller=context.caller(strict_from=5)
        )
        return response
    counts = Counter((topic.name, topic.topic_id) for topic in request.topics)
    allowed, rejected = [], []
    for topic in request.topics:
        if counts[topic.name, topic.topic_id] > 1:
            allowed.append(topic)  # It is then rejected as a duplicate.
            continue
        refusal = _refusal(broker, access, topic)
        if refusal is None:
            allowed.append(topic)
        else:
            rejected.append(refusal)
    response = await broker.controller.call(
        replace(request, topics=tuple(allowed)), caller=context.caller(strict_from=5)
    )
    return replace(response, responses=(*response.responses, *rejected))


def _refusal(
    broker: Broker, access: Access, topic: DeleteTopicState
) -> DeletableTopicResult | None:
    """Reveals neither the name nor the existence of a topic that may not be described."""
    known: str | None = topic.name
    if known is None and topic.topic_id is not None:
        known = broker.image.topic_name(topic.topic_id)
    if known is None or (topic.name is not None and topic.topic_id is not None):
        return None
    describable = access.may(Operation.DESCRIBE, ResourceType.TOPIC, known)
    if describable and known not in broker.image.topics:
        return None
    if describable and access.authorize(Operation.DELETE, ResourceType.TOPIC, known):
        return None
    return refused(
        DeletableTopicResult,
        DENIED,
        name=known if describable or topic.name is not None else None,
        topic_id=topic.topic_id,
    )


def error_response(request: DeleteTopicsRequest, error: ApiError) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        throttle_time=NO_THROTTLE,
        responses=tuple(
            refused(DeletableTopicResult, error, name=topic.name, topic_id=topic.topic_id)
            for topic in request.topics
        ),
    )
