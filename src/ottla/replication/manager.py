"""The partitions on this broker, kept in step with the cluster metadata.

A partition that the metadata assigns to this broker is led or followed here; one that it assigns
only to others is removed with its log. Committed records arrive one by one, or as a whole image;
both have the same result.
"""

import logging
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import NamedTuple
from uuid import UUID

from ottla.controller.directories import directory_of, is_online
from ottla.controller.image import TOPIC_RESOURCE, MetadataImage, TopicImage
from ottla.controller.records import (
    NO_LEADER,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
)
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.replication.counters import ReplicaCounters, TopicTraffic
from ottla.replication.delayed_produce import DelayedProduces
from ottla.replication.fetch_sessions import FetchSessions
from ottla.replication.followers import Followers
from ottla.replication.partition import FlushPolicy, LogFlusher, Partition
from ottla.replication.throttle import ReplicationThrottle
from ottla.runtime.clock import Clock
from ottla.storage.config import LONG_MAX, LogConfig
from ottla.storage.errors import StorageError
from ottla.storage.log import PartitionLog
from ottla.storage.manager import LogManager
from ottla.storage.reading import LogSlice

logger = logging.getLogger(__name__)


class LeadershipListener(NamedTuple):
    """Told of the partitions that this broker leads."""

    on_elected: Callable[[Partition], None]
    on_resigning: Callable[[Partition], None]  # Before their waiters are failed.


class FollowingListener(NamedTuple):
    """Fetches partitions from their leaders and proposes ISR changes."""

    on_following: Callable[[Partition, int], None]  # The leader's id. Also in a new epoch.
    on_following_ended: Callable[[Partition], None]  # Also if it was not followed.
    on_isr_change: Callable[[Partition], None]  # `partition.followers` has a new pending change.


class RoleListener(NamedTuple):
    """Reports leader and ISR changes to operators."""

    on_new_leader: Callable[[Partition, int], None]  # In a new epoch; it may be this node, or none.
    # For a partition that this broker leads: before, after and why.
    on_new_isr: Callable[[Partition, tuple[int, ...], tuple[int, ...], str], None]


class ReplicaSettings(NamedTuple):
    node_id: int
    flush_policy: FlushPolicy
    lag_time_max_ms: float  # A follower that lags for longer is not in sync.


class _Refused(NamedTuple):
    topic: TopicImage
    state: PartitionRecord
    error: ApiError


class ReplicaManager:
    def __init__(
        self,
        settings: ReplicaSettings,
        logs: LogManager,
        log_config: Callable[[str], LogConfig],
        flusher: LogFlusher,
        fetch_sessions: FetchSessions,
        clock: Clock,
    ) -> None:
        """`log_config` returns a topic's effective configuration."""
        self.fetch_sessions = fetch_sessions
        self.counters = ReplicaCounters()
        self.delayed_produces = DelayedProduces()
        self.throttle = ReplicationThrottle(settings.node_id, clock)
        # Complete before `load`: partitions led from the start are reported as well.
        self.leadership_listeners: list[LeadershipListener] = []
        self.following_listeners: list[FollowingListener] = []
        self.role_listeners: list[RoleListener] = []
        self._settings = settings
        self._node_id = settings.node_id
        self._logs = logs
        self._log_config = log_config
        self._flusher = flusher
        self._clock = clock
        self._image = MetadataImage()
        # Each topic has two entries, by name and by id, with the same partitions.
        self._topics: dict[str | UUID, dict[int, Partition]] = {}
        self._names: dict[UUID, str] = {}
        self._refused: dict[tuple[str | UUID, int], _Refused] = {}  # Log unavailable.

    def find(self, topic: str | UUID, index: int) -> Partition:
        """A partition that this broker leads, otherwise ApiError."""
        partitions = self._topics.get(topic)
        partition = None if partitions is None else partitions.get(index)
        if partition is None:
            raise self._absence(topic, index)
        if partition.leader is None:
            raise ApiError(ErrorCode.not_leader_or_follower)
        return partition

    def find_readable(self, topic: str | UUID, index: int) -> Partition:
        """A partition that this broker leads or follows, otherwise ApiError."""
        partition = self._topics.get(topic, {}).get(index)
        if partition is None:
            raise self._absence(topic, index)
        return partition

    def find_in_epoch(
        self, topic: str | UUID, index: int, leader_epoch: int, *, follower: bool = False
    ) -> Partition:
        """A partition that this broker leads, or follows, in the epoch that the client expects.

        A follower knows the epoch too, and rejects a client that is behind or ahead of it.
        """
        partition = self.find_readable(topic, index)
        partition.validate_leader_epoch(leader_epoch)
        if not (follower or partition.is_leader):
            raise ApiError(ErrorCode.not_leader_or_follower)
        return partition

    def on_fetched(self, topic: str | UUID, index: int, records: LogSlice) -> None:
        """These records are being sent to a consumer."""
        partition = self._topics.get(topic, {}).get(index)
        if partition is not None:
            traffic = partition.traffic
            traffic.fetches_out += 1
            traffic.bytes_out += records.size
            traffic.records_out += records.next_offset - records.first_offset

    def _absence(self, topic: str | UUID, index: int) -> ApiError:
        """Why a partition is not here: its log is unavailable, others have it, or there is none."""
        refused = self._refused.get((topic, index))
        if refused is not None:
            return refused.error
        image = self._image
        found = image.topics.get(topic) if isinstance(topic, str) else image.topic_by_id(topic)
        if found is not None and index in found.partitions:
            return ApiError(ErrorCode.not_leader_or_follower)
        if found is None and isinstance(topic, UUID):
            return ApiError(ErrorCode.unknown_topic_id)
        return ApiError(ErrorCode.unknown_topic_or_partition)

    def find_log(self, log: PartitionLog) -> Partition | None:
        """The partition that owns this log, if it is here."""
        topic, index = log.topic_partition
        partition = self._topics.get(topic, {}).get(index)
        return partition if partition is not None and partition.log is log else None

    def retry_refused(self) -> None:
        """Retry the partitions whose logs were unavailable: there may be room by now."""
        for refused in [self._refused[key] for key in self._refused if isinstance(key[0], UUID)]:
            self._apply_partition(refused.topic, refused.state)

    def partition_count(self, topic: str) -> int:
        """Any topic in the cluster; 0 if it does not exist."""
        return self._image.partition_count(topic) or 0

    def partitions(self) -> Iterator[Partition]:
        for topic_id in self._names:
            yield from self._topics[topic_id].values()

    def load(self, image: MetadataImage, removed_topic_ids: Collection[UUID] = ()) -> None:
        """Apply everything that an image assigns to this broker, and nothing else.

        The image must be current, or this broker could remove what it has been assigned since. A
        crash may have left the logs of deleted topics; these are removed. Logs of unknown topics
        are set aside: better to waste space than to remove what someone wants back.
        """
        self._image = image
        for log in list(self._logs.logs()):
            if log.topic_id in removed_topic_ids:
                self._logs.delete(log.topic_partition)
        refused_ids = {refused.topic.topic_id for refused in self._refused.values()}
        for topic_id in (self._names.keys() | refused_ids) - image.topics_by_id.keys():
            self._remove_topic(topic_id)
        for topic in image.topics.values():
            for state in topic.partitions.values():
                self._apply_partition(topic, state)
        for log in list(self._logs.logs()):
            if log.topic_id not in image.topics_by_id:
                self._logs.set_aside(log.topic_partition)

    def on_record(self, record: object, image: MetadataImage) -> None:
        """A record has been committed and is part of the image."""
        self._image = image
        if isinstance(record, PartitionRecord | PartitionChangeRecord):
            topic = image.topics_by_id[record.topic_id]
            self._apply_partition(topic, topic.partitions[record.partition_id])
        elif isinstance(record, RemoveTopicRecord):
            self._remove_topic(record.topic_id)
        elif isinstance(record, ConfigRecord):
            self._reconfigure(record)
        elif isinstance(record, RegisterBrokerRecord | BrokerRegistrationChangeRecord):
            self._on_broker_changed()

    def on_flush_failure(self, log: PartitionLog, error: BaseException) -> None:
        """Nothing that waited for this sync may be acknowledged."""
        partition = self.find_log(log)
        if partition is not None:
            logger.error("a sync of %s failed: %s", log.topic_partition, error)
            partition.on_flush_failed(ApiError(ErrorCode.kafka_storage_error, str(error)))

    def on_directory_failure(self, error: StorageError) -> None:
        """Its partitions are not served until the broker restarts with the directory."""
        refusal = ApiError(ErrorCode.kafka_storage_error, str(error))
        lost = [
            partition
            for partition in self.partitions()
            if partition.log.log_directory.path == error.directory
        ]
        if lost:
            logger.error("%d partitions are not served: %s", len(lost), error)
        for partition in lost:
            partition.on_flush_failed(refusal)
            topic = self._topic_of(partition)
            if topic is None:
                continue
            state = topic.partitions[partition.log.topic_partition.partition]
            self._take_out(topic.topic_id, partition, refusal)
            self._refuse(topic, state, error)

    def flush_overdue(self, now_ms: float) -> None:
        """Sync the logs whose topic demands it by time (flush.ms)."""
        for partition in self.partitions():
            if partition.log.config.flush_ms != LONG_MAX:
                partition.maybe_flush(now_ms)

    def shrink_in_sync_sets(self) -> None:
        """Called periodically: propose ISRs without the followers that lag too far.

        Also retries to add those that have caught up, in case that was refused.
        """
        now_ms = self._clock.monotonic_ms()
        for partition in self.partitions():
            leader, followers = partition.leader, partition.followers
            if leader is not None and followers is not None:
                if followers.maybe_shrink(partition.log.log_end_offset, now_ms):
                    self.on_isr_change(partition)
                leader.on_followers_changed()  # It may have waited for a follower that was near.
                self._maybe_expand(partition)

    def on_truncated(self, partition: Partition) -> None:
        """A thread has truncated its log: apply the metadata that arrived meanwhile."""
        topic, index = self._topic_of(partition), partition.log.topic_partition.partition
        if topic is not None and self._topics.get(topic.topic_id, {}).get(index) is partition:
            self._apply_partition(topic, topic.partitions[index])

    def on_isr_change(self, partition: Partition) -> None:
        """There is an ISR change to propose."""
        for listener in self.following_listeners:
            listener.on_isr_change(partition)

    def fail(self, error: ApiError) -> None:
        """Fail all waiters: this broker stops serving."""
        for partition in self.partitions():
            self._end_following(partition)
            self._resign(partition, error)

    def _apply_partition(self, topic: TopicImage, state: PartitionRecord) -> None:
        index = state.partition_id
        partition = self._topics.get(topic.topic_id, {}).get(index)
        if self._node_id not in state.replicas:
            self._remove_partition(topic, index, partition)
            return
        if partition is None:
            try:
                partition = self._add(topic, state)
            except (ApiError, StorageError) as error:
                if (topic.topic_id, index) not in self._refused:
                    logger.error("%s-%d is not served: %s", topic.name, index, error)
                self._refuse(topic, state, error)
                return
            self._forget_refusal(topic.name, topic.topic_id, index)
        if partition.is_being_truncated:
            return  # `on_truncated` continues here.
        is_new = state.leader_epoch > partition.leader_epoch
        if state.leader == self._node_id:
            self._lead(partition, state)
        else:
            self._follow(partition, state)
        if is_new:
            self.counters.leader_elections += 1
            for listener in self.role_listeners:
                listener.on_new_leader(partition, state.leader)

    def _lead(self, partition: Partition, state: PartitionRecord) -> None:
        if partition.is_leader and state.leader_epoch > partition.leader_epoch + 1:
            # Another broker may have led in between, which a whole image does not show.
            self._resign(partition, ApiError(ErrorCode.not_leader_or_follower))
        elected = not partition.is_leader
        if elected:
            self._end_following(partition)
        followers = self._followers(partition, state)
        partition.become_leader(state.leader_epoch, state.isr, followers)
        self._maybe_expand(partition)
        if elected:
            for listener in self.leadership_listeners:
                listener.on_elected(partition)

    def _followers(self, partition: Partition, state: PartitionRecord) -> Followers | None:
        """Those of an earlier epoch are forgotten: what they reported may no longer hold."""
        if len(state.replicas) == 1:
            return None
        followers = partition.followers
        new_epoch = state.leader_epoch > partition.leader_epoch
        if followers is None or new_epoch:
            log = partition.log
            start = log.log_end_offset if new_epoch else log.leader_epochs.entries[-1].start_offset
            followers = Followers(
                self._node_id,
                start,
                partial(self._may_be_in_sync, partition),
                self._settings.lag_time_max_ms,
            )
        before, reason = followers.isr, followers.reason_for(state.isr)
        is_new = followers.update(
            state.replicas,
            state.isr,
            state.partition_epoch,
            self._clock.monotonic_ms(),
            adding=state.adding_replicas,
        )
        if is_new and before and before != followers.isr:
            self.counters.isr_shrinks += len(followers.isr) < len(before)
            self.counters.isr_expands += len(followers.isr) > len(before)
            for listener in self.role_listeners:
                listener.on_new_isr(partition, before, followers.isr, reason)
        return followers

    def _may_be_in_sync(self, partition: Partition, broker_id: int, broker_epoch: int) -> bool:
        broker = self._image.brokers.get(broker_id)
        state = self.state_of(partition)
        return (
            broker is not None
            and not broker.fenced
            and not broker.in_controlled_shutdown
            and broker_epoch in (-1, broker.broker_epoch)
            and (state is None or is_online(broker, directory_of(state, broker_id)))
        )

    def state_of(self, partition: Partition) -> PartitionRecord | None:
        """Its state in the metadata."""
        topic = self._topic_of(partition)
        index = partition.log.topic_partition.partition
        return None if topic is None else topic.partitions.get(index)

    def _topic_of(self, partition: Partition) -> TopicImage | None:
        topic_id = partition.log.topic_id
        return None if topic_id is None else self._image.topics_by_id.get(topic_id)

    def _follow(self, partition: Partition, state: PartitionRecord) -> None:
        same_epoch = not partition.is_leader and state.leader_epoch == partition.leader_epoch
        if partition.is_leader:
            self._resign(partition, ApiError(ErrorCode.not_leader_or_follower))
        partition.become_follower(state.leader_epoch)
        if state.leader == NO_LEADER:
            self._end_following(partition)
        elif not same_epoch:
            for listener in self.following_listeners:
                listener.on_following(partition, state.leader)

    def _resign(self, partition: Partition, error: ApiError) -> None:
        if partition.is_leader:
            for listener in self.leadership_listeners:
                listener.on_resigning(partition)
        partition.resign(error)

    def _end_following(self, partition: Partition) -> None:
        for listener in self.following_listeners:
            listener.on_following_ended(partition)

    def _on_broker_changed(self) -> None:
        """A broker came or went, so followers may have become eligible or ineligible."""
        for partition in self.partitions():
            leader = partition.leader
            if leader is not None and leader.followers is not None:
                leader.on_followers_changed()
                self._maybe_expand(partition)

    def _maybe_expand(self, partition: Partition) -> None:
        followers = partition.followers
        now_ms = self._clock.monotonic_ms()
        if followers is not None and followers.maybe_expand(partition.log.high_watermark, now_ms):
            self.on_isr_change(partition)

    def _add(self, topic: TopicImage, state: PartitionRecord) -> Partition:
        index = state.partition_id
        topic_partition = TopicPartition(topic.name, index)
        is_led_elsewhere = state.leader not in (self._node_id, NO_LEADER)
        if is_led_elsewhere and topic_partition in self._logs.corrupt.all:
            logger.warning(
                "%s is damaged; it is fetched again from broker %d", topic_partition, state.leader
            )
            self._logs.corrupt.set_aside(topic_partition)
        if self._logs.get(
            topic_partition, topic.topic_id
        ) is None and self._logs.log_dirs.is_out_of_reach(directory_of(state, self._node_id)):
            raise ApiError(
                ErrorCode.kafka_storage_error,
                f"{topic_partition} is in a log directory that is offline",
            )
        partitions = self._topics.get(topic.topic_id, {})
        beside = next(iter(partitions.values()), None)  # Partitions of a topic share their config.
        config = self._log_config(topic.name) if beside is None else beside.log.config
        log = self._logs.create(topic_partition, topic.topic_id, config)
        traffic = TopicTraffic() if beside is None else beside.traffic
        partition = Partition(log, self._settings.flush_policy, self._flusher, traffic)
        self._topics[topic.topic_id] = self._topics[topic.name] = partitions
        self._names[topic.topic_id] = topic.name
        partitions[index] = partition
        return partition

    def _refuse(self, topic: TopicImage, state: PartitionRecord, error: Exception) -> None:
        index = state.partition_id
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
        for partition in list(self._topics.get(topic_id, {}).values()):
            self._remove(topic_id, partition)

    def _remove_partition(self, topic: TopicImage, index: int, partition: Partition | None) -> None:
        """It was reassigned to other brokers, perhaps while this one was away."""
        self._forget_refusal(topic.name, topic.topic_id, index)
        if partition is not None:
            self._remove(topic.topic_id, partition)
        else:
            topic_partition = TopicPartition(topic.name, index)
            if self._logs.get(topic_partition, topic.topic_id) is not None:
                self._logs.delete(topic_partition)

    def _remove(self, topic_id: UUID, partition: Partition) -> None:
        self._take_out(topic_id, partition, ApiError(ErrorCode.unknown_topic_or_partition))
        self._logs.delete(partition.log.topic_partition)

    def _take_out(self, topic_id: UUID, partition: Partition, error: ApiError) -> None:
        """Stop serving it here."""
        partitions = self._topics[topic_id]
        del partitions[partition.log.topic_partition.partition]
        if not partitions:
            del self._topics[topic_id], self._topics[self._names.pop(topic_id)]
        self._end_following(partition)
        self._resign(partition, error)

    def _reconfigure(self, record: ConfigRecord) -> None:
        """A broker-level value can be the default of any topic."""
        names = set(self._names.values())
        changed = {record.resource_name} if record.resource_type == TOPIC_RESOURCE else names
        for name in changed & names:
            config = self._log_config(name)
            for partition in self._topics[name].values():
                partition.log.configure(config)
