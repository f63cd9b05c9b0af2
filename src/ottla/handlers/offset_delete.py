"""OffsetDelete (47): v0.

Removes the offsets of a group for topics that none of its members subscribes to (KIP-496).
"""

from dataclasses import replace

from kio.schema.offset_delete.v0.request import OffsetDeleteRequest, OffsetDeleteRequestTopic
from kio.schema.offset_delete.v0.response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

from ottla.handlers.authorization import DENIED, require, split_topics
from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ErrorCode
from ottla.security.acls import Operation, ResourceType


async def handle(
    broker: Broker, context: RequestContext, request: OffsetDeleteRequest
) -> OffsetDeleteResponse:
    require(context, Operation.DELETE, ResourceType.GROUP, request.group_id)
    allowed, denied = split_topics(
        context, Operation.READ, request.topics, lambda topic: topic.name
    )
    reduced = replace(request, topics=tuple(allowed))
    response = await broker.groups.find(request.group_id).submit(
        lambda machine, _: machine.delete_offsets(reduced)
    )
    if response.error_code is not ErrorCode.none:
        return response
    return replace(response, topics=(*response.topics, *map(_denied, denied)))


def _denied(topic: OffsetDeleteRequestTopic) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=tuple(
            OffsetDeleteResponsePartition(
                partition_index=partition.partition_index, error_code=DENIED.code
            )
            for partition in topic.partitions
        ),
    )
