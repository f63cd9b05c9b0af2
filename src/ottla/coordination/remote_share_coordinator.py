"""Share coordinators on other brokers, called over the wire.

Each broker has one connection for this, on which requests are sent in the order of the calls.
"""

from asyncio import AbstractEventLoop, Future
from collections.abc import Awaitable, Callable
from typing import Any, Final

from kio.schema.delete_share_group_state.v0 import request as delete
from kio.schema.initialize_share_group_state.v0 import request as initialize
from kio.schema.read_share_group_state_summary.v1 import request as summary
from kio.schema.write_share_group_state.v1.request import StateBatch as WrittenBatch
from kio.static.primitive import i8, i16, i32, i64

from ottla.groups.share.delivery import DeliveryState, StateBatch
from ottla.groups.share.parked import NO_CHANGE, ParkedChange
from ottla.groups.share.state_coordinator import (
    NO_WRITER,
    SharePartitionKey,
    ShareState,
    StateWrite,
)
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages import read_share_group_state as read
from ottla.protocol.messages import write_share_group_state as write
from ottla.protocol.messages.read_share_group_state import NO_PAGE

TIMEOUT_MS: Final = 10_000

Exchange = Callable[[Any], Awaitable[Any]]  # A request to its response; ApiError if none came.


class RemoteShareCoordinator:
    def __init__(self, exchange: Exchange, loop: AbstractEventLoop) -> None:
        """`exchange` sends requests in the order of the calls."""
        self._exchange = exchange
        self._loop = loop

    async def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> None:
        data = initialize.PartitionData(
            partition=i32(key.partition),
            state_epoch=i32(state_epoch),
            start_offset=i64(start_offset),
        )
        topic = initialize.InitializeStateData(topic_id=key.topic_id, partitions=(data,))
        await self._ask(
            initialize.InitializeShareGroupStateRequest(group_id=key.group_id, topics=(topic,))
        )

    async def read(
        self, key: SharePartitionKey, leader_epoch: int, writer: int = NO_WRITER
    ) -> ShareState:
        answer = await self._read(key, leader_epoch, writer=writer)
        return ShareState(
            state_epoch=answer.state_epoch,
            leader_epoch=leader_epoch,
            start_offset=answer.start_offset,
            batches=tuple(
                StateBatch(
                    batch.first_offset,
                    batch.last_offset,
                    DeliveryState(batch.delivery_state),
                    batch.delivery_count,
                )
                for batch in answer.state_batches
            ),
            parked_count=answer.parked_count,
        )

    async def read_parked(
        self, key: SharePartitionKey, leader_epoch: int, first_offset: int
    ) -> ParkedChange:
        answer = await self._read(key, leader_epoch, parked_from=first_offset)
        return ParkedChange.decode(answer.parked) if answer.parked else NO_CHANGE

    async def _read(
        self,
        key: SharePartitionKey,
        leader_epoch: int,
        *,
        parked_from: int = NO_PAGE,
        writer: int = NO_WRITER,
    ) -> Any:
        data = read.RequestedPartition(
            partition=i32(key.partition),
            leader_epoch=i32(leader_epoch),
            parked_from=i64(parked_from),
            writer=i64(writer),
        )
        topic = read.ReadStateData(topic_id=key.topic_id, partitions=(data,))
        return await self._ask(
            read.ReadShareGroupStateRequest(group_id=key.group_id, topics=(topic,))
        )

    async def read_summary(self, key: SharePartitionKey) -> ShareState:
        data = summary.PartitionData(partition=i32(key.partition), leader_epoch=i32(-1))
        topic = summary.ReadStateSummaryData(topic_id=key.topic_id, partitions=(data,))
        answer = await self._ask(
            summary.ReadShareGroupStateSummaryRequest(group_id=key.group_id, topics=(topic,))
        )
        return ShareState(
            state_epoch=answer.state_epoch,
            leader_epoch=answer.leader_epoch,
            start_offset=answer.start_offset,
            delivery_complete_count=answer.delivery_complete_count,
            parked_count=answer.parked_count,
        )

    def write(self, key: SharePartitionKey, write: StateWrite) -> "Future[None]":
        return self._loop.create_task(self._write(key, write))

    async def _write(self, key: SharePartitionKey, change: StateWrite) -> None:
        data = write.PartitionData(
            partition=i32(key.partition),
            state_epoch=i32(change.state_epoch),
            leader_epoch=i32(change.leader_epoch),
            start_offset=i64(change.start_offset),
            delivery_complete_count=i32(change.delivery_complete_count),
            state_batches=tuple(
                WrittenBatch(
                    first_offset=i64(batch.first_offset),
                    last_offset=i64(batch.last_offset),
                    delivery_state=i8(batch.state),
                    delivery_count=i16(batch.delivery_count),
                )
                for batch in change.batches
            ),
            parked=b"" if change.parked == NO_CHANGE else change.parked.encode(),
            writer=i64(change.writer),
            sequence=i64(change.sequence),
        )
        topic = write.WriteStateData(topic_id=key.topic_id, partitions=(data,))
        await self._ask(write.WriteShareGroupStateRequest(group_id=key.group_id, topics=(topic,)))

    async def delete(self, key: SharePartitionKey) -> None:
        data = delete.PartitionData(partition=i32(key.partition))
        topic = delete.DeleteStateData(topic_id=key.topic_id, partitions=(data,))
        await self._ask(delete.DeleteShareGroupStateRequest(group_id=key.group_id, topics=(topic,)))

    async def _ask(self, request: Any) -> Any:
        """The result for the one share-partition that the request names."""
        response = await self._exchange(request)
        answers = [answer for result in response.results for answer in result.partitions]
        if len(answers) != 1:
            raise ApiError(
                ErrorCode.unknown_server_error, f"{len(answers)} answers to {request.__api_key__}"
            )
        if answers[0].error_code is not ErrorCode.none:
            raise ApiError(answers[0].error_code, answers[0].error_message)
        return answers[0]
