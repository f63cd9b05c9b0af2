"""Writes dead letters to the partition of the dead-letter topic that their source falls on.

It is the one of the same number, modulo the partitions of the topic, which is created when it is
first needed: with the partitions, the replicas and `min.insync.replicas` of the source, so that a
letter is as safe as the record was. The leader may be another broker, which gets an ordinary
Produce. A letter may be written more than once.
"""

import asyncio
from asyncio import Future, Semaphore
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

from kio.schema.create_topics.v7.request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32

from ottla.controller.config import MIN_INSYNC_REPLICAS
from ottla.controller.image import MetadataImage
from ottla.controller.records import NO_LEADER
from ottla.coordination.dead_letters import read_letters, without_content
from ottla.groups.share.delivery import DeadLetter
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import milliseconds
from ottla.protocol.topics import TopicPartition
from ottla.records.builder import Record, build_batch
from ottla.records.errors import BatchTooLarge, RecordError
from ottla.records.validation import validate_keys, validate_produced
from ottla.replication.manager import ReplicaManager
from ottla.replication.partition import ACKS_ALL, Partition
from ottla.runtime.controller import Controller
from ottla.runtime.process import Process

if TYPE_CHECKING:
    from kio.schema.produce.v13.request import ProduceRequest
    from kio.schema.produce.v13.response import ProduceResponse

WRITE_TIMEOUT_MS: Final = 3_000  # Less than the answer of another broker is waited for.
BATCHES_PER_BROKER: Final = 4  # Under way at a time: what is held in memory.

_CREATION_TIMEOUT_MS: Final = 30_000
_DECOMPRESSED_RATIO_MAX: Final = 10
_THERE: Final = frozenset({ErrorCode.none, ErrorCode.topic_already_exists})
_TOO_LARGE: Final = frozenset({ErrorCode.message_too_large, ErrorCode.record_list_too_large})

# Sends a request to a broker; ApiError when no answer came.
AskBroker = Callable[[int, "ProduceRequest"], Awaitable["ProduceResponse"]]


class DeadLetterRoutes:
    def __init__(
        self,
        node_id: int,
        replicas: ReplicaManager,
        image: MetadataImage,
        controller: Controller,
        ask: AskBroker,
        process: Process,
    ) -> None:
        self._node_id = node_id
        self._replicas = replicas
        self._image = image
        self._controller = controller
        self._ask = ask
        self._process = process
        self._slots: defaultdict[int, Semaphore] = defaultdict(
            lambda: Semaphore(BATCHES_PER_BROKER)
        )

    async def write(
        self,
        letters: Sequence[DeadLetter],
        source: Partition,
        group_id: str,
        topic: str,
        *,
        copy_record: bool,
    ) -> Sequence[DeadLetter]:
        """Write a batch of them to the topic and return those; ApiError when it may not be."""
        target = await self._target(topic, source.log.topic_partition)
        async with self._slots[self._leader(target)]:
            records, written = await self._process.loop.run_in_executor(
                self._process.executor,
                lambda: read_letters(source, letters, group_id, copy_record=copy_record),
            )
            if records:
                await self._send(target, records)
        return written

    async def _send(self, target: TopicPartition, records: Sequence[Record]) -> None:
        """A letter that is too large for the topic says only where its record is."""
        try:
            await self._append(target, build_batch(records))
        except ApiError as error:
            if error.code not in _TOO_LARGE:
                raise
            if len(records) > 1:
                middle = len(records) // 2
                await self._send(target, records[:middle])
                await self._send(target, records[middle:])
                return
            bare = without_content(records[0])
            if bare == records[0]._replace(offset=bare.offset):
                raise
            await self._send(target, (bare,))

    # Where they go.

    async def _target(self, topic: str, source: TopicPartition) -> TopicPartition:
        if self._image.partition_count(topic) is None:
            await self._create(topic, source.topic)
        count = self._image.partition_count(topic)
        if not count:
            raise ApiError(ErrorCode.unknown_topic_or_partition, f"there is no topic {topic}")
        return TopicPartition(topic, source.partition % count)

    def _leader(self, target: TopicPartition) -> int:
        state = self._image.partition(*target)
        if state is None or state.leader == NO_LEADER:
            raise ApiError(ErrorCode.leader_not_available, f"{target} has no leader")
        return state.leader

    async def _create(self, topic: str, source: str) -> None:
        response = await self._controller.call(
            CreateTopicsRequest(
                topics=(self._like(topic, source),),
                timeout=milliseconds(_CREATION_TIMEOUT_MS),
                validate_only=False,
            )
        )
        (created,) = response.topics
        if created.error_code not in _THERE:
            raise ApiError(
                created.error_code, f"{topic} cannot be created: {created.error_message}"
            )

    def _like(self, topic: str, source: str) -> CreatableTopic:
        first = self._image.partition(source, 0)
        if first is None:
            raise ApiError(ErrorCode.unknown_topic_or_partition, f"there is no topic {source}")
        in_sync = self._image.topic_configs(source).get(MIN_INSYNC_REPLICAS.name)
        configs = () if in_sync is None else ((MIN_INSYNC_REPLICAS.name, in_sync),)
        return CreatableTopic(
            name=TopicName(topic),
            num_partitions=i32(self._image.partition_count(source) or 1),
            replication_factor=i16(len(first.replicas)),
            assignments=(),
            configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in configs),
        )

    # Writing.

    async def _append(self, target: TopicPartition, batch: bytearray) -> None:
        leader = self._leader(target)
        if leader == self._node_id:
            await self._append_here(self._replicas.find(*target), batch)
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
        partition.validate_in_sync_replicas()
        appended = partition.append(records, header, self._process.clock.now_ms())
        if partition.acknowledged(appended, ACKS_ALL):
            return
        # Settled with the reason, not with the error, which would refer to this frame and so to
        # the future.
        refusal: Future[tuple[ErrorCode, str] | None] = self._process.loop.create_future()
        partition.wait_for_acknowledgement(
            appended, ACKS_ALL, lambda error: _settle(refusal, error)
        )
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
        topic_id = self._image.topic_id(target.topic)
        if topic_id is None:
            raise ApiError(ErrorCode.unknown_topic_or_partition, f"there is no {target}")
        response = await self._ask(leader, _produce(topic_id, target.partition, bytes(batch)))
        answers = [one for topic in response.responses for one in topic.partition_responses]
        if len(answers) != 1:
            raise ApiError(ErrorCode.unknown_server_error, f"broker {leader} did not say of it")
        if answers[0].error_code is not ErrorCode.none:
            said = answers[0].error_message or answers[0].error_code.name
            raise ApiError(answers[0].error_code, f"broker {leader}, which leads {target}: {said}")


def _produce(topic_id: UUID, partition: int, batch: bytes) -> "ProduceRequest":
    """What it takes is imported when another broker leads the partition."""
    from kio.schema.produce.v13.request import (
        PartitionProduceData,
        ProduceRequest,
        TopicProduceData,
    )
    from kio.static.primitive import Records

    data = PartitionProduceData(index=i32(partition), records=Records(batch))
    return ProduceRequest(
        acks=i16(ACKS_ALL),
        timeout=milliseconds(WRITE_TIMEOUT_MS),
        topic_data=(TopicProduceData(topic_id=topic_id, partition_data=(data,)),),
    )


def _settle(refusal: "Future[tuple[ErrorCode, str] | None]", error: ApiError | None) -> None:
    if not refusal.done():  # Otherwise whoever waited has gone.
        refusal.set_result(None if error is None else (error.code, error.message))
