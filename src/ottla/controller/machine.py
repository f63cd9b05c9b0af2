"""The controller: the machine that decides about the cluster metadata.

Its operations are methods of the parts below; `operations` lists them by request. They take the
newest request entities and return the newest response entities; see `machine.result` for what
happens with these. ApiError is raised if the whole request is rejected; the error of a single item
goes into the response.

Parts that only some requests need are created on first use: importing everything would delay the
start of a broker.
"""

from __future__ import annotations

from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING

from ottla.controller.brokers import BrokerControl
from ottla.controller.cluster_minimum import ClusterMinimum
from ottla.controller.config import (
    AUTO_LEADER_REBALANCE_ENABLE,
    BROKER_SESSION_TIMEOUT_MS,
    LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS,
)
from ottla.controller.effective_configs import ConfigRules, EffectiveConfigs
from ottla.controller.elections import ElectionControl
from ottla.controller.image import MetadataImage
from ottla.controller.internal_topics import InternalTopicControl
from ottla.controller.leadership import Leadership
from ottla.controller.partition_index import PartitionIndex
from ottla.controller.token_config import DELEGATION_TOKEN_SECRET_KEY
from ottla.machine.contract import Timers
from ottla.protocol.config import ConfigValues
from ottla.protocol.entities import entity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from uuid import UUID

    from ottla.controller.acls import AclControl
    from ottla.controller.configs import ConfigControl
    from ottla.controller.directory_assignments import DirectoryAssignments
    from ottla.controller.elect_leaders import ElectionRequests
    from ottla.controller.feature_updates import FeatureControl
    from ottla.controller.in_sync import InSyncControl
    from ottla.controller.mutations import MutationQuotas
    from ottla.controller.producer_ids import ProducerIdControl
    from ottla.controller.quotas import QuotaControl
    from ottla.controller.reassignments import ReassignmentControl
    from ottla.controller.tokens import TokenControl
    from ottla.controller.topics import TopicControl
    from ottla.controller.users import UserControl
    from ottla.protocol.config import ConfigKey
    from ottla.security.scram import ScramCredential


@entity
class ControllerSettings:
    cluster_id: str
    config_rules: ConfigRules
    new_topic_id: Callable[[], UUID]
    placement_start: Callable[[int], int]  # The index of a new topic's first broker, out of n.
    internal_factors: Mapping[str, ConfigKey[int]]  # Replication factors of internal topics.
    # For a cluster without users, by name and mechanism.
    initial_users: Mapping[tuple[str, int], ScramCredential] = field(default_factory=dict)


class ControllerMachine:
    """Implements `machine.contract.Machine`."""

    def __init__(self, settings: ControllerSettings, timers: Timers) -> None:
        static = ConfigValues(settings.config_rules.static)
        self.image = MetadataImage()
        self._settings = settings
        self._timers = timers
        self._index = PartitionIndex(self.image)
        self._leadership = Leadership(self.image, settings.config_rules)
        self._elections = ElectionControl(
            self._index,
            self._leadership,
            timers,
            preferred=static[AUTO_LEADER_REBALANCE_ENABLE],
            interval_ms=static[LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS] * 1000,
        )
        self.brokers = BrokerControl(
            image=self.image,
            index=self._index,
            leadership=self._leadership,
            elections=self._elections,
            cluster_id=settings.cluster_id,
            session_timeout_ms=static[BROKER_SESSION_TIMEOUT_MS],
            timers=timers,
        )
        self._minimum = ClusterMinimum(
            self.image,
            settings.config_rules.static,
            lambda records: self.configs.with_effects(records),  # noqa: PLW0108 - made on first use
            timers,
        )
        self._internal_topics = InternalTopicControl(
            self.image,
            self._leadership,
            EffectiveConfigs(self.image, settings.config_rules, None),
            settings.internal_factors,
            timers,
        )

    def replay(self, record: object, timestamp_ms: int) -> None:
        del timestamp_ms
        self._index.replay(record)

    def snapshot(self) -> Iterable[object]:
        return self.image.snapshot()

    def on_loaded(self, now_ms: int) -> None:
        self._minimum.on_loaded(now_ms)
        self.brokers.on_loaded(now_ms)
        self._internal_topics.on_loaded(now_ms)
        self._elections.elect_soon(now_ms)
        if self._settings.initial_users:
            self.users.on_loaded(now_ms)
        if ConfigValues(self._settings.config_rules.static)[DELEGATION_TOKEN_SECRET_KEY]:
            self.tokens.on_loaded(now_ms)

    @cached_property
    def topics(self) -> TopicControl:
        from ottla.controller.topics import TopicControl

        settings = self._settings
        return TopicControl(
            self.image, settings.config_rules, settings.new_topic_id, settings.placement_start
        )

    @cached_property
    def mutations(self) -> MutationQuotas:
        from ottla.controller.mutations import MutationQuotas

        return MutationQuotas(self.image, ConfigValues(self._settings.config_rules.static))

    @cached_property
    def configs(self) -> ConfigControl:
        from ottla.controller.configs import ConfigControl

        return ConfigControl(self.image, self._settings.config_rules, self._index, self._leadership)

    @cached_property
    def directories(self) -> DirectoryAssignments:
        from ottla.controller.directory_assignments import DirectoryAssignments

        return DirectoryAssignments(self.image, self._leadership)

    @cached_property
    def in_sync(self) -> InSyncControl:
        from ottla.controller.in_sync import InSyncControl

        return InSyncControl(self.image, self._leadership)

    @cached_property
    def election_requests(self) -> ElectionRequests:
        from ottla.controller.elect_leaders import ElectionRequests

        return ElectionRequests(self.image, self._index, self._leadership)

    @cached_property
    def reassignments(self) -> ReassignmentControl:
        from ottla.controller.reassignments import ReassignmentControl

        return ReassignmentControl(self.image, self._index, self._leadership)

    @cached_property
    def features(self) -> FeatureControl:
        from ottla.controller.feature_updates import FeatureControl

        return FeatureControl(self.image)

    @cached_property
    def users(self) -> UserControl:
        from ottla.controller.users import UserControl

        return UserControl(self.image, self._settings.initial_users, self._timers)

    @cached_property
    def tokens(self) -> TokenControl:
        from ottla.controller.tokens import TokenControl

        settings = self._settings
        static = ConfigValues(settings.config_rules.static)
        return TokenControl(self.image, static, settings.new_topic_id, self._timers)

    @cached_property
    def acls(self) -> AclControl:
        from ottla.controller.acls import AclControl

        return AclControl(self.image, self._settings.new_topic_id)

    @cached_property
    def quotas(self) -> QuotaControl:
        from ottla.controller.quotas import QuotaControl

        return QuotaControl(self.image)

    @cached_property
    def producer_ids(self) -> ProducerIdControl:
        from ottla.controller.producer_ids import ProducerIdControl

        return ProducerIdControl(self.image, self._settings.new_topic_id)
