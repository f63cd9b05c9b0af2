"""DeleteShareGroupOffsets (92): v0.

Forgets how far a share group without members has come in some topics.
"""

from kio.schema.delete_share_group_offsets.v0.request import DeleteShareGroupOffsetsRequest
from kio.schema.delete_share_group_offsets.v0.response import (
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from kio.schema.types import TopicName

from ottla.groups.partitions import by_topic
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.share_state import find_share_group, remove_share_offsets
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE


async def handle(
    broker: Broker, _: RequestContext, request: DeleteShareGroupOffsetsRequest
) -> DeleteShareGroupOffsetsResponse:
    group = find_share_group(broker, request.group_id)
    group.validate_delete()
    known = by_topic(group.initialized)
    ids = {topic.topic_name: broker.image.topic_id(topic.topic_name) for topic in request.topics}
    wanted = frozenset(each for each in group.initialized if each.topic_id in ids.values())
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
    return DeleteShareGroupOffsetsResponse(
        throttle_time=NO_THROTTLE, error_code=ErrorCode.none, responses=tuple(responses)
    )


def error_response(
    _: DeleteShareGroupOffsetsRequest, error: ApiError
) -> DeleteShareGroupOffsetsResponse:
    return DeleteShareGroupOffsetsResponse(
        throttle_time=NO_THROTTLE,
        error_code=error.code,
        error_message=error.message,
        responses=(),
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
