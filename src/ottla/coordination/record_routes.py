"""Appends batches written by the broker itself to partitions, wherever these are led.

If another broker leads the partition, it gets an ordinary Produce.
"""

import asyncio
from asyncio import Future
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final
from uuid import UUID

from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.static.primitive import i16, i32

from ottla.controller.image import MetadataImage
from ottla.controller.records import NO_LEADER
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.lazy_dataclass import dataclass
from ottla.protocol.times import milliseconds
from ottla.protocol.topics import TopicPartition
from ottla.records.errors import BatchTooLarge, RecordError
from ottla.records.validation import validate_keys, validate_produced
from ottla.replication.manager import ReplicaManager
from ottla.replication.partition import Partition
from ottla.replication.partition_leader import ACKS_ALL
from ottla.runtime.controller import Controller
from ottla.runtime.process import Process

if TYPE_CHECKING:
    from kio.schema.produce.v13.request import ProduceRequest
    from kio.schema.produce.v13.response import ProduceResponse

CREATION_TIMEOUT_MS: Final = 30_000
WRITE_TIMEOUT_MS: Final = 3_000  # Less than the timeout for another broker's response.
_DECOMPRESSED_RATIO_MAX: Final = 10

# Sends a request to a broker; ApiError if no response came.
AskBroker = Callable[[int, "ProduceRequest"], Awaitable["ProduceResponse"]]


@dataclass(slots=True, eq=False)
class RecordRoutes:
    node_id: int
    replicas: ReplicaManager
    image: MetadataImage
    ask: AskBroker
    process: Process

    def leader(self, target: TopicPartition) -> int:
        state = self.image.partition(*target)
        if state is None or state.leader == NO_LEADER:
            raise ApiError(ErrorCode.leader_not_available, f"{target} has no leader")
        return state.leader

    async def append(self, target: TopicPartition, batch: bytearray) -> None:
        """With acks=all; ApiError if it failed or the outcome is unknown."""
        leader = self.leader(target)
        if leader == self.node_id:
            await self._append_here(self.replicas.find(*target), batch)
        else:
            await self._append_at(leader, target, batch)

    async def _append_here(self, partition: Partition, batch: bytearray) -> None:
        records, config = memoryview(batch), partition.log.config
        try:
            header = validate_produced(records, max_batch_bytes=config.max_message_bytes)
            if config.compact:
                limit = _DECOMPRESSED_RATIO_MAX * config.max_message_bytes
                validate_keys(records, limit=limit)
        except BatchTooLarge as error:
            raise ApiError(ErrorCode.message_too_large, str(error)) from error
        except RecordError as error:
            raise ApiError(ErrorCode.invalid_record, str(error)) from error
        leader = partition.leader
        assert leader is not None, "find has looked"
        leader.validate_in_sync_replicas()
        appended = leader.append(records, header, self.process.clock.now_ms())
        if leader.acknowledged(appended, ACKS_ALL):
            return
        # Settled with the reason: the error would reference this frame, and so the future.
        refusal: Future[tuple[ErrorCode, str] | None] = self.process.loop.create_future()
        leader.wait_for_acknowledgement(appended, ACKS_ALL, lambda error: _settle(refusal, error))
        try:
            async with asyncio.timeout(WRITE_TIMEOUT_MS / 1000):
                refused = await refusal
        except TimeoutError:
            name = partition.log.topic_partition
            raise ApiError(
                ErrorCode.request_timed_out, f"the in-sync replicas of {name} are slow"
            ) from None
        if refused is not None:
            raise ApiError(*refused)

    async def _append_at(self, leader: int, target: TopicPartition, batch: bytearray) -> None:
        topic_id = self.image.topic_id(target.topic)
        if topic_id is None:
            raise ApiError(ErrorCode.unknown_topic_or_partition, f"there is no {target}")
        request = produce_request(topic_id, target.partition, bytes(batch), WRITE_TIMEOUT_MS)
        response = await self.ask(leader, request)
        answers = [
            partition for topic in response.responses for partition in topic.partition_responses
        ]
        if len(answers) != 1:
            raise ApiError(
                ErrorCode.unknown_server_error, f"broker {leader} sent no result for {target}"
            )
        if answers[0].error_code is not ErrorCode.none:
            problem = answers[0].error_message or answers[0].error_code.name
            raise ApiError(
                answers[0].error_code, f"broker {leader}, which leads {target}: {problem}"
            )


async def create_topic(controller: Controller, topic: CreatableTopic) -> None:
    """Unless it exists already; ApiError if that fails."""
    response = await controller.call(
        CreateTopicsRequest(
            topics=(topic,), timeout=milliseconds(CREATION_TIMEOUT_MS), validate_only=False
        )
    )
    (created,) = response.topics
    if created.error_code not in (ErrorCode.none, ErrorCode.topic_already_exists):
        message = f"{topic.name} cannot be created: {created.error_message}"
        raise ApiError(created.error_code, message)


def produce_request(
    topic_id: UUID, partition: int, batch: bytes, timeout_ms: int
) -> "ProduceRequest":
    """With acks=all. The imports are deferred until another broker leads the partition."""
    from kio.schema.produce.v13.request import (
        PartitionProduceData,
        ProduceRequest,
        TopicProduceData,
    )
    from kio.static.primitive import Records

    data = PartitionProduceData(index=i32(partition), records=Records(batch))
    return ProduceRequest(
        acks=i16(ACKS_ALL),
        timeout=milliseconds(timeout_ms),
        topic_data=(TopicProduceData(topic_id=topic_id, partition_data=(data,)),),
    )


def _settle(refusal: "Future[tuple[ErrorCode, str] | None]", error: ApiError | None) -> None:
    if not refusal.done():  # Otherwise the waiter has gone.
        refusal.set_result(None if error is None else (error.code, error.message))
