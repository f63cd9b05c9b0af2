"""The rules for electing a partition's leader: active brokers and topic configs.

min.insync.replicas decides here who has everything, so it must not exceed the value that the leader
uses. Config files may differ between nodes; only the metadata, which every node reads, counts: the
topic's value, or else that of all brokers (see `cluster_minimum`).
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Final, TypeVar
from uuid import UUID

from ottla.controller.config import MIN_INSYNC_REPLICAS, UNCLEAN_LEADER_ELECTION_ENABLE
from ottla.controller.directories import directory_of, is_online
from ottla.controller.effective_configs import ConfigRules
from ottla.controller.image import BROKER_RESOURCE, TOPIC_RESOURCE, ConfigResource, MetadataImage
from ottla.controller.partition_change import Election, PartitionChange
from ottla.controller.partition_index import PartitionIndex
from ottla.controller.records import ConfigRecord, PartitionChangeRecord, PartitionRecord
from ottla.protocol.config import ConfigKey
from ottla.protocol.errors import ApiError

T = TypeVar("T")

# Values about to be written, by resource and key; None means that the value is removed.
Pending = Mapping[tuple[ConfigResource, str], str | None]
_NOTHING: Final[Pending] = {}

_ALL_BROKERS: Final[ConfigResource] = (BROKER_RESOURCE, "")


class Leadership:
    def __init__(self, image: MetadataImage, rules: ConfigRules) -> None:
        self._image = image
        self._rules = rules
        # Brokers that are losing their partitions and will be fenced soon.
        self.leaving: set[int] = set()
        # Full log directories by broker, from their heartbeats; not replicated.
        self._full_directories: dict[int, frozenset[UUID | None]] = {}

    def is_active(self, broker_id: int) -> bool:
        broker = self._image.brokers.get(broker_id)
        return (
            broker is not None
            and not broker.fenced
            and not broker.in_controlled_shutdown
            and broker_id not in self.leaving
        )

    def has_replica(self, partition: PartitionRecord, broker_id: int) -> bool:
        """Whether the replica's log directory is online."""
        broker = self._image.brokers.get(broker_id)
        return broker is not None and is_online(broker, directory_of(partition, broker_id))

    def note_full_directories(
        self, broker_id: int, directories: tuple[UUID | None, ...] | None
    ) -> None:
        if directories:
            self._full_directories[broker_id] = frozenset(directories)
        else:
            self._full_directories.pop(broker_id, None)

    def forget(self, broker_id: int) -> None:
        """Its current incarnation has ended."""
        self.leaving.discard(broker_id)
        self._full_directories.pop(broker_id, None)

    def has_room(self, partition: PartitionRecord, broker_id: int) -> bool:
        """Whether a replica can take records, as far as its broker has reported."""
        full = self._full_directories.get(broker_id)
        if full is None:
            return True
        directory = directory_of(partition, broker_id)
        if directory is not None:
            return directory not in full
        return not full.issuperset(self._image.brokers[broker_id].log_dirs)

    def change(
        self,
        partition: PartitionRecord,
        election: Election | None = None,
        pending: Pending = _NOTHING,
    ) -> PartitionChange:
        """The default election depends on the topic's config."""
        topic = self._image.topics_by_id[partition.topic_id].name
        if election is None:
            is_unclean = self._is_unclean(topic, pending)
            election = Election.UNCLEAN if is_unclean else Election.ONLINE
        return PartitionChange(
            partition,
            lambda broker_id: self.is_active(broker_id) and self.has_replica(partition, broker_id),
            self._stored(topic, MIN_INSYNC_REPLICAS, pending) or MIN_INSYNC_REPLICAS.default,
            election,
            partial(self.has_room, partition),
        )

    def changes_by_configs(
        self, index: PartitionIndex, configs: Iterable[ConfigRecord]
    ) -> Iterator[PartitionChangeRecord]:
        """The partition changes caused by these configs.

        With a lower minimum an in-sync set may be large enough, and then no one else is known to
        have everything. Where unclean elections become allowed, there may finally be a leader.
        """
        pending = {
            ((int(config.resource_type), config.resource_name), config.name): config.value
            for config in configs
            if config.name in (MIN_INSYNC_REPLICAS.name, UNCLEAN_LEADER_ELECTION_ENABLE.name)
        }
        resources = {resource for resource, _ in pending}
        if not resources:
            return
        for partition in index.with_eligible_leaders_or_leaderless():
            topic = self._image.topics_by_id[partition.topic_id].name
            if _ALL_BROKERS in resources or (TOPIC_RESOURCE, topic) in resources:
                yield from self.change(partition, pending=pending).records()

    def _is_unclean(self, topic: str, pending: Pending) -> bool:
        key = UNCLEAN_LEADER_ELECTION_ENABLE
        stored = self._stored(topic, key, pending)
        return bool(self._rules.static.get(key.name, key.default)) if stored is None else stored

    def _stored(self, topic: str, key: ConfigKey[T], pending: Pending) -> T | None:
        configs = self._image.configs
        for resource in ((int(TOPIC_RESOURCE), topic), _ALL_BROKERS):
            config_name = (resource, key.name)
            if config_name in pending:
                text = pending[config_name]
            else:
                values = configs.get(resource)
                text = None if values is None else values.get(key.name)
            if text is not None:
                try:
                    return key.parse(text)
                except ApiError:
                    continue  # Another release accepted it; it counts as unset.
        return None
