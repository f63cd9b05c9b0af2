"""Asks other brokers (ListOffsets) how far the partitions that they lead are committed."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i64

from ottla.controller.image import MetadataImage
from ottla.controller.records import NO_LEADER
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import milliseconds
from ottla.protocol.topics import TopicPartition

if TYPE_CHECKING:
    from kio.schema.list_offsets.v11.request import ListOffsetsRequest
    from kio.schema.list_offsets.v11.response import ListOffsetsResponse

_CONSUMER: Final = -1
_LATEST: Final = -1

# Sends a request to a broker; ApiError if no response came.
AskBroker = Callable[[int, "ListOffsetsRequest"], Awaitable["ListOffsetsResponse"]]


class RemoteLogEnds:
    def __init__(self, image: MetadataImage, ask: AskBroker) -> None:
        self._image = image
        self._ask = ask

    async def find(self, partition: TopicPartition) -> int:
        """ApiError if the leader does not answer."""
        state = self._image.partition(*partition)
        if state is None or state.leader == NO_LEADER:
            raise ApiError(ErrorCode.leader_not_available, f"{partition} has no leader")
        request = offset_request(partition, state.leader_epoch, _LATEST)
        response = await self._ask(state.leader, request)
        answers = [answer for topic in response.topics for answer in topic.partitions]
        if len(answers) != 1:
            raise ApiError(
                ErrorCode.unknown_server_error,
                f"broker {state.leader} sent no result for {partition}",
            )
        if answers[0].error_code is not ErrorCode.none:
            raise ApiError(
                answers[0].error_code,
                f"broker {state.leader} refused to say where {partition} ends",
            )
        return answers[0].offset


def offset_request(
    partition: TopicPartition, leader_epoch: int, timestamp: int
) -> "ListOffsetsRequest":
    """Rejected by a broker that does not lead the partition, or leads it in another epoch.

    The imports are deferred until another broker leads a partition.
    """
    from kio.schema.list_offsets.v11.request import (
        ListOffsetsPartition,
        ListOffsetsRequest,
        ListOffsetsTopic,
    )

    asked = ListOffsetsPartition(
        partition_index=i32(partition.partition),
        current_leader_epoch=i32(leader_epoch),
        timestamp=i64(timestamp),
    )
    topic = ListOffsetsTopic(name=TopicName(partition.topic), partitions=(asked,))
    return ListOffsetsRequest(
        replica_id=BrokerId(_CONSUMER),
        isolation_level=i8(0),
        topics=(topic,),
        timeout=milliseconds(0),
    )
