"""Indexes partitions by in-sync broker, and by the attention that they need.

It follows every record of the controller's image, so that a broker that comes or goes requires no
search through all topics.
"""

from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

from ottla.controller.image import MetadataImage
from ottla.controller.records import (
    NO_LEADER,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
)


class PartitionKey(NamedTuple):
    topic_id: UUID
    partition_id: int


_Keys = dict[PartitionKey, None]  # A set that keeps its order, so that runs are repeatable.


class PartitionIndex:
    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._in_sync: dict[int, _Keys] = {}
        self._eligible: dict[int, _Keys] = {}
        self._led: dict[int, _Keys] = {}
        self._leaderless: _Keys = {}
        self._not_preferred: _Keys = {}
        self._reassigned: _Keys = {}

    def replay(self, record: object) -> None:
        """Replay the record into the image and update the index."""
        if isinstance(record, PartitionRecord | PartitionChangeRecord):
            key = PartitionKey(record.topic_id, record.partition_id)
            before = self.find(key)
            self._image.replay(record)
            if before is not None:
                self._remove(key, before)
            self._add(key, self.get(key))
            return
        if isinstance(record, RemoveTopicRecord):
            for partition in self._image.topics_by_id[record.topic_id].partitions.values():
                self._remove(PartitionKey(record.topic_id, partition.partition_id), partition)
        self._image.replay(record)

    def get(self, key: PartitionKey) -> PartitionRecord:
        return self._image.topics_by_id[key.topic_id].partitions[key.partition_id]

    def find(self, key: PartitionKey) -> PartitionRecord | None:
        return self._image.topics_by_id[key.topic_id].partitions.get(key.partition_id)

    def leads_any(self, broker_id: int) -> bool:
        return bool(self._led.get(broker_id))

    def in_sync(self, broker_id: int) -> Iterator[PartitionRecord]:
        """The partitions for which it is in sync, including those it leads."""
        return map(self.get, tuple(self._in_sync.get(broker_id, ())))

    def in_sync_or_eligible(self, broker_id: int) -> Iterator[PartitionRecord]:
        keys = {**self._in_sync.get(broker_id, {}), **self._eligible.get(broker_id, {})}
        return map(self.get, keys)

    def with_eligible_leaders_or_leaderless(self) -> Iterator[PartitionRecord]:
        keys = dict(self._leaderless)
        for eligible in self._eligible.values():
            keys.update(eligible)
        return map(self.get, keys)

    def leaderless(self) -> Iterator[PartitionRecord]:
        return map(self.get, tuple(self._leaderless))

    def not_preferred(self) -> Iterator[PartitionRecord]:
        """The partitions that are led by another replica than their first, or by none."""
        return map(self.get, tuple(self._not_preferred))

    def reassigned(self) -> Iterator[PartitionRecord]:
        return map(self.get, tuple(self._reassigned))

    def _add(self, key: PartitionKey, partition: PartitionRecord) -> None:
        for keys in self._key_sets(partition):
            keys[key] = None

    def _remove(self, key: PartitionKey, partition: PartitionRecord) -> None:
        for keys in self._key_sets(partition):
            del keys[key]

    def _key_sets(self, partition: PartitionRecord) -> Iterator[_Keys]:
        for replica in partition.isr:
            yield self._in_sync.setdefault(replica, {})
        for replica in partition.eligible_leader_replicas or ():
            yield self._eligible.setdefault(replica, {})
        if partition.leader == NO_LEADER:
            yield self._leaderless
        else:
            yield self._led.setdefault(partition.leader, {})
        if partition.leader != partition.replicas[0]:
            yield self._not_preferred
        if partition.adding_replicas or partition.removing_replicas:
            yield self._reassigned
