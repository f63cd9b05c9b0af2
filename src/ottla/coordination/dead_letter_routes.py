"""Writes dead letters to the dead-letter topic, to the partition that matches their source.

It has the source's partition number, modulo the partition count of the topic. The topic is created
on demand, with the partition count, the replication factor and the `min.insync.replicas` of the
source, so that a letter is as safe as the record was. If another broker leads the partition, it
gets an ordinary Produce. A letter may be written more than once.
"""

from asyncio import Semaphore
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from kio.schema.create_topics.v7.request import (
    CreatableTopic,
    CreatableTopicConfig,
)
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32

from ottla.controller.config import MIN_INSYNC_REPLICAS
from ottla.controller.image import MetadataImage
from ottla.coordination.dead_letters import read_letters, without_content
from ottla.coordination.record_routes import RecordRoutes, create_topic
from ottla.groups.share.delivery import DeadLetter
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.records.builder import Record, build_batch
from ottla.replication.partition import Partition
from ottla.runtime.controller import Controller
from ottla.runtime.process import Process

BATCHES_PER_BROKER: Final = 4  # In flight at a time: bounds what is held in memory.

_TOO_LARGE: Final = frozenset({ErrorCode.message_too_large, ErrorCode.record_list_too_large})


class DeadLetterRoutes:
    def __init__(
        self,
        routes: RecordRoutes,
        image: MetadataImage,
        controller: Controller,
        process: Process,
    ) -> None:
        self._routes = routes
        self._image = image
        self._controller = controller
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
        """Write a batch of them and return those; ApiError if they may not have been written."""
        target = await self._target(topic, source.log.topic_partition)
        async with self._slots[self._routes.leader(target)]:
            records, written = await self._process.in_thread(
                lambda: read_letters(source, letters, group_id, copy_record=copy_record)
            )
            if records:
                await self._send(target, records)
        return written

    async def _send(self, target: TopicPartition, records: Sequence[Record]) -> None:
        """If a letter is too large for the topic, write only where its record is."""
        try:
            await self._routes.append(target, build_batch(records))
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

    # Destination.

    async def _target(self, topic: str, source: TopicPartition) -> TopicPartition:
        if self._image.partition_count(topic) is None:
            await create_topic(self._controller, self._like(topic, source.topic))
        count = self._image.partition_count(topic)
        if not count:
            raise ApiError(ErrorCode.unknown_topic_or_partition, f"there is no topic {topic}")
        return TopicPartition(topic, source.partition % count)

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
