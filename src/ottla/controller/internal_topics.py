"""Gives internal topics their configured replicas once there are enough brokers.

They are created when a client first needs a coordinator, often before the other brokers of a
cluster have joined, and no one thinks of them later. So the controller checks periodically: a
partition with fewer replicas than its topic's key demands gets more, on active brokers. This is a
reassignment like an operator's, a few partitions at a time. It is also a chance to spread the
leaders, where the coordinators run: the broker that is least often the first replica becomes the
first.

Partitions with more replicas than configured keep them, as do those on absent brokers.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from kio.schema.types import BrokerId

from ottla.controller.effective_configs import EffectiveConfigs
from ottla.controller.image import MetadataImage, TopicImage
from ottla.controller.leadership import Leadership
from ottla.controller.partition_change import Replicas
from ottla.controller.partitions import open_candidates
from ottla.controller.placement import Candidate
from ottla.controller.records import NO_LEADER, PartitionChangeRecord, PartitionRecord
from ottla.machine.contract import Timers
from ottla.machine.result import Result
from ottla.protocol.config import ConfigKey

PARTITIONS_AT_ONCE: Final = 10
IDLE_INTERVAL_MS: Final = 5_000
BUSY_INTERVAL_MS: Final = 500
_TIMER: Final = "internal topics"


class InternalTopicControl:
    """`factors` has the replication factor key of each internal topic."""

    def __init__(
        self,
        image: MetadataImage,
        leadership: Leadership,
        configs: EffectiveConfigs,
        factors: Mapping[str, ConfigKey[int]],
        timers: Timers,
    ) -> None:
        self._image = image
        self._leadership = leadership
        self._configs = configs
        self._factors = factors
        self._timers = timers

    def on_loaded(self, now_ms: int) -> None:
        self._schedule(now_ms + IDLE_INTERVAL_MS)

    def _schedule(self, deadline_ms: int) -> None:
        self._timers.schedule(_TIMER, deadline_ms, self._look)

    def _look(self, now_ms: int) -> Result[None]:
        topics = [topic for name in self._factors if (topic := self._image.topics.get(name))]
        ongoing_count = sum(
            bool(partition.adding_replicas)
            for topic in topics
            for partition in topic.partitions.values()
        )
        room = max(PARTITIONS_AT_ONCE - ongoing_count, 0)
        records = tuple(islice(self._additions(topics), room))
        is_busy = bool(records or ongoing_count)
        self._schedule(now_ms + (BUSY_INTERVAL_MS if is_busy else IDLE_INTERVAL_MS))
        return Result(None, records)

    def _additions(self, topics: Sequence[TopicImage]) -> Iterator[PartitionChangeRecord]:
        values = self._configs.broker_values()
        active = open_candidates(self._image)
        for topic in topics:
            wanted_count = min(values[self._factors[topic.name]], len(active))
            spread = _Spread(topic, active)
            for partition in topic.partitions.values():
                if len(partition.replicas) < wanted_count and _can_get_more(partition):
                    yield self._addition(partition, spread.widened(partition, wanted_count))

    def _addition(self, partition: PartitionRecord, wanted: Replicas) -> PartitionChangeRecord:
        change = self._leadership.change(partition)
        change.replicas = wanted
        change.adding = tuple(replica for replica in wanted if replica not in partition.replicas)
        record = change.record()
        assert record is not None, "replicas are added"
        return record


def _can_get_more(partition: PartitionRecord) -> bool:
    is_reassigned = partition.adding_replicas or partition.removing_replicas
    return not is_reassigned and partition.leader != NO_LEADER


class _Spread:
    """How evenly a topic's replicas, and its first replicas, are spread over brokers."""

    def __init__(self, topic: TopicImage, active: Sequence[Candidate]) -> None:
        self._active = active
        self._racks = {broker.broker_id: broker.rack for broker in active}
        self._all: Counter[int] = Counter()
        self._first: Counter[int] = Counter()
        for partition in topic.partitions.values():
            self._all.update(partition.replicas)
            self._first[partition.replicas[0]] += 1

    def widened(self, partition: PartitionRecord, count: int) -> Replicas:
        """Add replicas in other racks, on brokers with few; also choose the first replica."""
        replicas = list(partition.replicas)
        free = [broker.broker_id for broker in self._active if broker.broker_id not in replicas]
        while free and len(replicas) < count:
            best = min(
                free, key=lambda node: (self._conflicts(replicas, node), self._all[node], node)
            )
            free.remove(best)
            replicas.append(best)
            self._all[best] += 1
        self._first[replicas[0]] -= 1
        able = [replica for replica in replicas if replica in self._racks]
        first = min(able, key=lambda node: self._first[node], default=replicas[0])
        self._first[first] += 1
        return (first, *(replica for replica in replicas if replica != first))

    def _conflicts(self, replicas: Sequence[BrokerId], broker_id: BrokerId) -> int:
        """A broker without a rack counts as its own rack."""
        rack = self._racks[broker_id]
        return 0 if rack is None else sum(self._racks.get(replica) == rack for replica in replicas)
