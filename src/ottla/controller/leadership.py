"""The rules that a partition's leader is found by: who is active, what the topic's config says.

min.insync.replicas decides here who has everything, so it must not be greater than what the leader
goes by. Files of configuration can differ from node to node; only what every node reads in the
metadata counts: the value of the topic, or else that of all brokers.
"""

from typing import TypeVar

from ottla.controller.config import MIN_INSYNC_REPLICAS, UNCLEAN_LEADER_ELECTION_ENABLE
from ottla.controller.effective_configs import ConfigRules
from ottla.controller.features import ELIGIBLE_LEADER_REPLICAS_VERSION, feature_level
from ottla.controller.image import MetadataImage
from ottla.controller.partition_change import Election, PartitionChange
from ottla.controller.records import PartitionRecord
from ottla.protocol.config import ConfigKey
from ottla.protocol.errors import ApiError

T = TypeVar("T")


class Leadership:
    def __init__(self, image: MetadataImage, rules: ConfigRules) -> None:
        self._image = image
        self._rules = rules

    def is_active(self, broker_id: int) -> bool:
        broker = self._image.brokers.get(broker_id)
        return broker is not None and not broker.fenced and not broker.in_controlled_shutdown

    def change(
        self, partition: PartitionRecord, election: Election | None = None
    ) -> PartitionChange:
        """By default the election is that of the topic's config."""
        topic = self._image.topics_by_id[partition.topic_id].name
        if election is None:
            election = Election.UNCLEAN if self.is_unclean(topic) else Election.ONLINE
        return PartitionChange.of(
            partition,
            self.is_active,
            self.min_insync_replicas(topic),
            has_eligible_leaders=self.has_eligible_leaders(),
            election=election,
        )

    def min_insync_replicas(self, topic: str) -> int:
        return _stored(self._image, topic, MIN_INSYNC_REPLICAS) or MIN_INSYNC_REPLICAS.default

    def is_unclean(self, topic: str) -> bool:
        """Whether a replica that is not in sync may lead the topic's partitions."""
        key = UNCLEAN_LEADER_ELECTION_ENABLE
        stored = _stored(self._image, topic, key)
        return bool(self._rules.static.get(key.name, key.default)) if stored is None else stored

    def has_eligible_leaders(self) -> bool:
        return feature_level(self._image, ELIGIBLE_LEADER_REPLICAS_VERSION) > 0


def _stored(image: MetadataImage, topic: str, key: ConfigKey[T]) -> T | None:
    for values in (image.topic_configs(topic), image.default_broker_configs()):
        text = values.get(key.name)
        if text is not None:
            try:
                return key.parse(text)
            except ApiError:
                continue  # Another release accepted it; it is as if it were not set.
    return None
