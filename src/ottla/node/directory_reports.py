"""Reports to the controller the log directory of each replica of this broker (KIP-858).

A broker with one directory has nothing to report. The reports are compared with the metadata, so
one that was lost, or interrupted by a restart, is repeated.
"""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import islice
from random import Random
from typing import Final
from uuid import UUID

from kio.schema.assign_replicas_to_dirs.v0.request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)
from kio.schema.assign_replicas_to_dirs.v0.response import AssignReplicasToDirsResponse
from kio.schema.types import BrokerId
from kio.static.primitive import i32, i64

from ottla.controller.directories import directory_of
from ottla.controller.image import MetadataImage, TopicImage
from ottla.controller.partition_index import PartitionKey
from ottla.controller.records import PartitionChangeRecord, PartitionRecord
from ottla.protocol.errors import ApiError
from ottla.protocol.topics import TopicPartition
from ottla.runtime.backoff import Backoff
from ottla.runtime.supervisor import Supervisor
from ottla.storage.manager import LogManager

PARTITIONS_PER_REQUEST: Final = 2000
_RETRY_S: Final = 0.2
_RETRY_MAX_S: Final = 10.0

Assign = Callable[[AssignReplicasToDirsRequest], Awaitable[AssignReplicasToDirsResponse]]


class DirectoryReports:
    def __init__(
        self,
        *,
        node_id: int,
        logs: LogManager,
        image: MetadataImage,
        assign: Assign,
        broker_epoch: Callable[[], int],
        random: Random,
        supervisor: Supervisor,
    ) -> None:
        self._node_id = node_id
        self._logs = logs
        self._image = image
        self._assign = assign
        self._broker_epoch = broker_epoch
        self._supervisor = supervisor
        self._backoff = Backoff(_RETRY_S, _RETRY_MAX_S, random)
        self._untold: dict[PartitionKey, None] = {}
        self._is_running = False

    def on_record(self, record: object, image: MetadataImage) -> None:
        """Call after the record's partition was set up."""
        if isinstance(record, PartitionRecord | PartitionChangeRecord):
            topic = image.topics_by_id[record.topic_id]
            self._look(topic, topic.partitions[record.partition_id])

    def load(self, image: MetadataImage) -> None:
        for topic in image.topics.values():
            for partition in topic.partitions.values():
                self._look(topic, partition)

    def on_moved(self, topic_partition: TopicPartition) -> None:
        """A replica has moved to another directory."""
        topic = self._image.topics.get(topic_partition.topic)
        if topic is not None and topic_partition.partition in topic.partitions:
            self._look(topic, topic.partitions[topic_partition.partition])

    def _look(self, topic: TopicImage, partition: PartitionRecord) -> None:
        if self._news(topic, partition) is None:
            return
        self._untold[PartitionKey(topic.topic_id, partition.partition_id)] = None
        if not self._is_running and not self._supervisor.stopped:
            self._is_running = True
            self._supervisor.start("directory reports", self._tell_all())

    def _news(self, topic: TopicImage, partition: PartitionRecord) -> UUID | None:
        """The directory of a replica, if the metadata does not have it."""
        if self._node_id not in partition.replicas:
            return None
        topic_partition = TopicPartition(topic.name, partition.partition_id)
        log = self._logs.get(topic_partition, topic.topic_id)
        if log is None or log.damage:
            return None  # A damaged one has no directory until it is repaired.
        directory = self._logs.log_dirs.ids.get(log.log_directory.path)
        reported = directory_of(partition, self._node_id)
        if reported is None and len(self._logs.log_dirs.ids) == 1:
            return None
        return None if directory == reported else directory

    async def _tell_all(self) -> None:
        try:
            while self._untold:
                await self._tell(list(islice(self._untold, PARTITIONS_PER_REQUEST)))
        finally:
            self._is_running = False

    async def _tell(self, keys: list[PartitionKey]) -> None:
        for key in keys:
            del self._untold[key]
        directories: dict[UUID, dict[UUID, list[int]]] = {}
        for topic_id, index in keys:
            topic = self._image.topics_by_id.get(topic_id)
            news = None if topic is None else self._news(topic, topic.partitions[index])
            if news is not None:
                directories.setdefault(news, {}).setdefault(topic_id, []).append(index)
        if not directories:
            return
        try:
            await self._assign(self._request(directories))
            self._backoff.reset()
        except ApiError:
            self._untold.update(dict.fromkeys(keys))
            await asyncio.sleep(self._backoff.next_s())

    def _request(
        self, directories: dict[UUID, dict[UUID, list[int]]]
    ) -> AssignReplicasToDirsRequest:
        return AssignReplicasToDirsRequest(
            broker_id=BrokerId(self._node_id),
            broker_epoch=i64(self._broker_epoch()),
            directories=tuple(
                DirectoryData(
                    id_=directory,
                    topics=tuple(
                        TopicData(
                            topic_id=topic_id,
                            partitions=tuple(
                                PartitionData(partition_index=i32(index)) for index in indexes
                            ),
                        )
                        for topic_id, indexes in topics.items()
                    ),
                )
                for directory, topics in directories.items()
            ),
        )
