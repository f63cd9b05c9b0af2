"""The partitions that live on this broker, kept in step with the cluster's metadata."""

import logging
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple
from uuid import UUID

from ottla.controller.image import TOPIC_RESOURCE, MetadataImage, TopicImage
from ottla.controller.records import (
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
)
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.replication.delayed_produce import DelayedProduces
from ottla.replication.fetch_sessions import FetchSessions
from ottla.replication.partition import FlushPolicy, LogFlusher, Partition
from ottla.storage.config import LONG_MAX, LogConfig
from ottla.storage.errors import StorageError
from ottla.storage.log import PartitionLog
from ottla.storage.manager import LogManager

logger = logging.getLogger(__name__)


class LeadershipListener(NamedTuple):
    """Who works on partitions that this broker leads."""

    on_elected: Callable[[Partition], None]
    on_resigning: Callable[[Partition], None]  # Before those who wait on the partition are failed.


class _Refused(NamedTuple):
    topic: TopicImage
    state: PartitionRecord
    error: ApiError


class ReplicaManager:
    def __init__(
        self,
        node_id: int,
        logs: LogManager,
        log_config: Callable[[str], LogConfig],
        flush_policy: FlushPolicy,
        flusher: LogFlusher,
        fetch_sessions: FetchSessions,
    ) -> None:
        """`log_config` gives the configuration in force for a topic."""
        self.fetch_sessions = fetch_sessions
        self.delayed_produces = DelayedProduces()
        self._node_id = node_id
        self._logs = logs
        self._log_config = log_config
        self._flush_policy = flush_policy
        self._flusher = flusher
        # A topic stands here twice, under its name and its id, with the same partitions.
        self._topics: dict[str | UUID, dict[int, Partition]] = {}
        self._names: dict[UUID, str] = {}
        self._listeners: list[LeadershipListener] = []
        self._refused: dict[tuple[str | UUID, int], _Refused] = {}  # Whose log cannot be had.

    def listen(self, listener: LeadershipListener) -> None:
        """Before `load`: the partitions that this broker leads from the start are told as well."""
        self._listeners.append(listener)

    def find(self, topic: str | UUID, index: int) -> Partition:
        """A partition that this broker leads."""
        partitions = self._topics.get(topic)
        partition = None if partitions is None else partitions.get(index)
        if partition is None:
            refused = self._refused.get((topic, index))
            raise refused.error if refused is not None else _unknown(topic, partitions)
        if not partition.is_leader:
            raise ApiError(ErrorCode.not_leader_or_follower)
        return partition

    def retry_refused(self) -> None:
        """Take up the partitions whose logs could not be had: there may be room by now."""
        for refused in [self._refused[key] for key in self._refused if isinstance(key[0], UUID)]:
            self._apply_partition(refused.topic, refused.state)

    def partitions(self) -> Iterator[Partition]:
        for topic_id in self._names:
            yield from self._topics[topic_id].values()

    def load(self, image: MetadataImage, removed_topic_ids: Collection[UUID] = ()) -> None:
        """Take up everything that the metadata gives to this broker.

        A crash may have left the logs of topics that were deleted. Logs that nobody knows are left
        alone: better to waste space than to remove what somebody wants back.
        """
        for topic in image.topics.values():
            for partition in topic.partitions.values():
                self._apply_partition(topic, partition)
        for log in self._logs.logs():
            if log.topic_id in removed_topic_ids:
                self._logs.delete(log.topic_partition)
            elif log.topic_id not in self._names:
                logger.warning("%s is not in the cluster; it is left alone", log.directory)

    def on_record(self, record: object, image: MetadataImage) -> None:
        """A record has been committed and is in the image."""
        if isinstance(record, PartitionRecord | PartitionChangeRecord):
            topic = image.topics_by_id[record.topic_id]
            self._apply_partition(topic, topic.partitions[record.partition_id])
        elif isinstance(record, RemoveTopicRecord):
            self._remove_topic(record.topic_id)
        elif isinstance(record, ConfigRecord):
            self._reconfigure(record)

    def on_flush_failure(self, log: PartitionLog, error: BaseException) -> None:
        """Nothing that waited for this sync may be acknowledged."""
        topic, index = log.topic_partition
        partition = self._topics.get(topic, {}).get(index)
        if partition is not None and partition.log is log:
            logger.error("a sync of %s failed: %s", log.topic_partition, error)
            partition.on_flush_failed(ApiError(ErrorCode.kafka_storage_error, str(error)))

    def on_directory_failure(self, error: StorageError) -> None:
        refusal = ApiError(ErrorCode.kafka_storage_error, str(error))
        for partition in self.partitions():
            if partition.log.home.path == error.directory:
                partition.on_flush_failed(refusal)

    def flush_overdue(self, now_ms: float) -> None:
        """Sync the logs whose topic asks for that by time (flush.ms)."""
        for partition in self.partitions():
            if partition.log.config.flush_ms != LONG_MAX:
                partition.maybe_flush(now_ms)

    def fail(self, error: ApiError) -> None:
        """Answer everyone who waits: this broker stops serving."""
        for partition in self.partitions():
            self._resign(partition, error)

    def _apply_partition(self, topic: TopicImage, state: PartitionRecord) -> None:
        if self._node_id not in state.replicas:
            return
        partition = self._topics.get(topic.topic_id, {}).get(state.partition_id)
        if partition is None:
            try:
                partition = self._add(topic, state.partition_id)
            except (ApiError, StorageError) as error:
                self._refuse(topic, state, error)
                return
            self._forget_refusal(topic.name, topic.topic_id, state.partition_id)
        if state.leader == self._node_id:
            self._lead(partition, state)
        else:
            self._resign(partition, ApiError(ErrorCode.not_leader_or_follower))

    def _lead(self, partition: Partition, state: PartitionRecord) -> None:
        elected = not partition.is_leader
        partition.become_leader(state.leader_epoch, state.isr)
        if elected:
            for listener in self._listeners:
                listener.on_elected(partition)

    def _resign(self, partition: Partition, error: ApiError) -> None:
        if partition.is_leader:
            for listener in self._listeners:
                listener.on_resigning(partition)
        partition.resign(error)

    def _add(self, topic: TopicImage, index: int) -> Partition:
        partitions = self._topics.get(topic.topic_id, {})
        beside = next(iter(partitions.values()), None)  # Partitions of a topic share their config.
        config = self._log_config(topic.name) if beside is None else beside.log.config
        log = self._logs.create(TopicPartition(topic.name, index), topic.topic_id, config)
        partition = Partition(log, self._flush_policy, self._flusher)
        self._topics[topic.topic_id] = self._topics[topic.name] = partitions
        self._names[topic.topic_id] = topic.name
        partitions[index] = partition
        return partition

    def _refuse(self, topic: TopicImage, state: PartitionRecord, error: Exception) -> None:
        index = state.partition_id
        if (topic.topic_id, index) not in self._refused:
            logger.error("%s-%d is not served: %s", topic.name, index, error)
        refused = _Refused(topic, state, ApiError(ErrorCode.kafka_storage_error, str(error)))
        self._refused[topic.topic_id, index] = self._refused[topic.name, index] = refused

    def _forget_refusal(self, name: str, topic_id: UUID, index: int) -> None:
        for topic in (name, topic_id):
            self._refused.pop((topic, index), None)

    def _remove_topic(self, topic_id: UUID) -> None:
        for refused in list(self._refused.values()):
            if refused.topic.topic_id == topic_id:
                self._forget_refusal(refused.topic.name, topic_id, refused.state.partition_id)
                self._logs.delete(TopicPartition(refused.topic.name, refused.state.partition_id))
        name = self._names.pop(topic_id, None)
        if name is None:
            return
        del self._topics[name]
        for partition in self._topics.pop(topic_id).values():
            self._resign(partition, ApiError(ErrorCode.unknown_topic_or_partition))
            self._logs.delete(partition.log.topic_partition)

    def _reconfigure(self, record: ConfigRecord) -> None:
        """A broker's value can be the default of any topic."""
        names = set(self._names.values())
        changed = {record.resource_name} if record.resource_type == TOPIC_RESOURCE else names
        for name in changed & names:
            config = self._log_config(name)
            for partition in self._topics[name].values():
                partition.log.config = config


def _unknown(topic: str | UUID, partitions: object) -> ApiError:
    if partitions is None and isinstance(topic, UUID):
        return ApiError(ErrorCode.unknown_topic_id)
    return ApiError(ErrorCode.unknown_topic_or_partition)
