"""DeleteShareGroupOffsets (92): v0.

Deletes the progress of a share group without members in some topics.
"""

from kio.schema.delete_share_group_offsets.v0.request import DeleteShareGroupOffsetsRequest
from kio.schema.delete_share_group_offsets.v0.response import (
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from kio.schema.types import TopicName

from ottla.groups.partitions import by_topic
from ottla.handlers.authorization import DENIED, denied_topics, require
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.refusals import refused
from ottla.handlers.share_state import remove_share_offsets
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation, ResourceType


async def handle(
    broker: Broker, context: RequestContext, request: DeleteShareGroupOffsetsRequest
) -> DeleteShareGroupOffsetsResponse:
    require(context, Operation.DELETE, ResourceType.GROUP, request.group_id)
    denied = denied_topics(context, Operation.READ, (topic.topic_name for topic in request.topics))
    machine = broker.groups.find(request.group_id).machine
    machine.share_partitions.group(request.group_id).validate_delete()
    found = machine.share_partitions.with_state(request.group_id)
    known = by_topic(found)
    ids = {
        topic.topic_name: broker.image.topic_id(topic.topic_name)
        for topic in request.topics
        if topic.topic_name not in denied
    }
    wanted = frozenset(each for each in found if each.topic_id in ids.values())
    if wanted:
        await remove_share_offsets(broker, request.group_id, wanted)
    responses = []
    for name, topic_id in ids.items():
        error = None
        if topic_id is None:
            error = f"there is no topic {name}"
        elif topic_id not in known:
            error = f"the group has no offsets of {name}"
        responses.append(_topic(broker, name, error))
    responses += [
        refused(DeleteShareGroupOffsetsResponseTopic, DENIED, topic_name=topic.topic_name)
        for topic in request.topics
        if topic.topic_name in denied
    ]
    return DeleteShareGroupOffsetsResponse(
        throttle_time=NO_THROTTLE, error_code=ErrorCode.none, responses=tuple(responses)
    )


def _topic(
    broker: Broker, name: TopicName, error: str | None
) -> DeleteShareGroupOffsetsResponseTopic:
    code = ErrorCode.none if error is None else ErrorCode.unknown_topic_or_partition
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=name,
        topic_id=broker.image.topic_id(name),
        error_code=code,
        error_message=error,
    )
