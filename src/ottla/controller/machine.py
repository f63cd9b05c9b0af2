"""The controller: the machine that decides about the cluster's metadata.

Operations take the newest request entities and return the newest response entities; see
`machine.result` for what becomes of them. An ApiError is raised where the whole request is refused
and put into the response where one item of it is.

What only some requests need is made with the first of them: a broker starts in the time that it
takes to import everything.
"""

from __future__ import annotations

from dataclasses import dataclass
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
from ottla.machine.contract import Timers
from ottla.machine.result import Result
from ottla.protocol.config import ConfigValues

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from uuid import UUID

    from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest
    from kio.schema.allocate_producer_ids.v0.response import AllocateProducerIdsResponse
    from kio.schema.alter_configs.v2.request import AlterConfigsRequest
    from kio.schema.alter_configs.v2.response import AlterConfigsResponse
    from kio.schema.alter_partition.v3.request import AlterPartitionRequest
    from kio.schema.alter_partition.v3.response import AlterPartitionResponse
    from kio.schema.alter_partition_reassignments.v1.request import (
        AlterPartitionReassignmentsRequest,
    )
    from kio.schema.alter_partition_reassignments.v1.response import (
        AlterPartitionReassignmentsResponse,
    )
    from kio.schema.assign_replicas_to_dirs.v0.request import AssignReplicasToDirsRequest
    from kio.schema.assign_replicas_to_dirs.v0.response import AssignReplicasToDirsResponse
    from kio.schema.broker_heartbeat.v2.request import BrokerHeartbeatRequest
    from kio.schema.broker_heartbeat.v2.response import BrokerHeartbeatResponse
    from kio.schema.broker_registration.v4.request import BrokerRegistrationRequest
    from kio.schema.broker_registration.v4.response import BrokerRegistrationResponse
    from kio.schema.create_partitions.v3.request import CreatePartitionsRequest
    from kio.schema.create_partitions.v3.response import CreatePartitionsResponse
    from kio.schema.create_topics.v7.request import CreateTopicsRequest
    from kio.schema.create_topics.v7.response import CreateTopicsResponse
    from kio.schema.delete_topics.v6.request import DeleteTopicsRequest
    from kio.schema.delete_topics.v6.response import DeleteTopicsResponse
    from kio.schema.elect_leaders.v2.request import ElectLeadersRequest
    from kio.schema.elect_leaders.v2.response import ElectLeadersResponse
    from kio.schema.incremental_alter_configs.v1.request import IncrementalAlterConfigsRequest
    from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse
    from kio.schema.list_partition_reassignments.v0.request import ListPartitionReassignmentsRequest
    from kio.schema.list_partition_reassignments.v0.response import (
        ListPartitionReassignmentsResponse,
    )
    from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
    from kio.schema.unregister_broker.v0.response import UnregisterBrokerResponse
    from kio.schema.update_features.v2.request import UpdateFeaturesRequest

    from ottla.controller.configs import ConfigControl
    from ottla.controller.directory_assignments import DirectoryAssignments
    from ottla.controller.elect_leaders import ElectionRequests
    from ottla.controller.feature_updates import FeatureControl
    from ottla.controller.in_sync import InSyncControl
    from ottla.controller.producer_ids import ProducerIdControl
    from ottla.controller.reassignments import ReassignmentControl
    from ottla.controller.topics import TopicControl
    from ottla.protocol.config import ConfigKey
    from ottla.protocol.messages.update_features import UpdateFeaturesResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    cluster_id: str
    config_rules: ConfigRules
    new_topic_id: Callable[[], UUID]
    placement_start: Callable[[int], int]  # Of n brokers, which one a new topic starts at.
    internal_factors: Mapping[str, ConfigKey[int]]  # Replication factors of internal topics.


class ControllerMachine:
    """Implements `machine.contract.Machine`."""

    def __init__(self, settings: ControllerSettings, timers: Timers) -> None:
        static = ConfigValues(settings.config_rules.static)
        self.image = MetadataImage()
        self._settings = settings
        self._index = PartitionIndex(self.image)
        self._leadership = Leadership(self.image, settings.config_rules)
        self._elections = ElectionControl(
            self._index,
            self._leadership,
            timers,
            preferred=static[AUTO_LEADER_REBALANCE_ENABLE],
            interval_ms=static[LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS] * 1000,
        )
        self._brokers = BrokerControl(
            self.image,
            self._index,
            self._leadership,
            self._elections,
            settings.cluster_id,
            static[BROKER_SESSION_TIMEOUT_MS],
            timers,
        )
        self._minimum = ClusterMinimum(
            self.image,
            settings.config_rules.static,
            lambda records: self._configs.with_effects(records),  # noqa: PLW0108 - made on first use
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
        self._brokers.on_loaded(now_ms)
        self._internal_topics.on_loaded(now_ms)
        self._elections.on_loaded(now_ms)

    def create_topics(self, request: CreateTopicsRequest) -> Result[CreateTopicsResponse]:
        return self._topics.create_topics(request)

    def delete_topics(self, request: DeleteTopicsRequest) -> Result[DeleteTopicsResponse]:
        return self._topics.delete_topics(request)

    def create_partitions(
        self, request: CreatePartitionsRequest
    ) -> Result[CreatePartitionsResponse]:
        return self._topics.create_partitions(request)

    def incremental_alter_configs(
        self, request: IncrementalAlterConfigsRequest
    ) -> Result[IncrementalAlterConfigsResponse]:
        return self._configs.incremental_alter_configs(request)

    def alter_configs(self, request: AlterConfigsRequest) -> Result[AlterConfigsResponse]:
        return self._configs.alter_configs(request)

    def register_broker(
        self, request: BrokerRegistrationRequest, next_offset: int
    ) -> Result[BrokerRegistrationResponse]:
        return self._brokers.register_broker(request, next_offset)

    def broker_heartbeat(
        self, request: BrokerHeartbeatRequest, now_ms: int, next_offset: int
    ) -> Result[BrokerHeartbeatResponse]:
        return self._brokers.broker_heartbeat(request, now_ms, next_offset)

    def suspect_broker(self, broker_id: int, now_ms: int) -> Result[None]:
        return self._brokers.suspect_broker(broker_id, now_ms)

    def end_broker(self, broker_id: int, broker_epoch: int, now_ms: int) -> Result[None]:
        return self._brokers.end_broker(broker_id, broker_epoch, now_ms)

    def unregister_broker(
        self, request: UnregisterBrokerRequest
    ) -> Result[UnregisterBrokerResponse]:
        return self._brokers.unregister_broker(request)

    def assign_replicas_to_dirs(
        self, request: AssignReplicasToDirsRequest
    ) -> Result[AssignReplicasToDirsResponse]:
        return self._directories.assign_replicas_to_dirs(request)

    def alter_partition(self, request: AlterPartitionRequest) -> Result[AlterPartitionResponse]:
        return self._in_sync.alter_partition(request)

    def elect_leaders(self, request: ElectLeadersRequest) -> Result[ElectLeadersResponse]:
        return self._election_requests.elect_leaders(request)

    def alter_partition_reassignments(
        self, request: AlterPartitionReassignmentsRequest
    ) -> Result[AlterPartitionReassignmentsResponse]:
        return self._reassignments.alter_partition_reassignments(request)

    def list_partition_reassignments(
        self, request: ListPartitionReassignmentsRequest
    ) -> Result[ListPartitionReassignmentsResponse]:
        return self._reassignments.list_partition_reassignments(request)

    def update_features(self, request: UpdateFeaturesRequest) -> Result[UpdateFeaturesResponse]:
        return self._features.update_features(request)

    def allocate_producer_ids(
        self, request: AllocateProducerIdsRequest
    ) -> Result[AllocateProducerIdsResponse]:
        return self._producer_ids.allocate_producer_ids(request)

    @cached_property
    def _topics(self) -> TopicControl:
        from ottla.controller.topics import TopicControl

        settings = self._settings
        return TopicControl(
            self.image, settings.config_rules, settings.new_topic_id, settings.placement_start
        )

    @cached_property
    def _configs(self) -> ConfigControl:
        from ottla.controller.configs import ConfigControl

        return ConfigControl(self.image, self._settings.config_rules, self._index, self._leadership)

    @cached_property
    def _directories(self) -> DirectoryAssignments:
        from ottla.controller.directory_assignments import DirectoryAssignments

        return DirectoryAssignments(self.image, self._leadership)

    @cached_property
    def _in_sync(self) -> InSyncControl:
        from ottla.controller.in_sync import InSyncControl

        return InSyncControl(self.image, self._leadership)

    @cached_property
    def _election_requests(self) -> ElectionRequests:
        from ottla.controller.elect_leaders import ElectionRequests

        return ElectionRequests(self.image, self._index, self._leadership)

    @cached_property
    def _reassignments(self) -> ReassignmentControl:
        from ottla.controller.reassignments import ReassignmentControl

        return ReassignmentControl(self.image, self._index, self._leadership)

    @cached_property
    def _features(self) -> FeatureControl:
        from ottla.controller.feature_updates import FeatureControl

        return FeatureControl(self.image)

    @cached_property
    def _producer_ids(self) -> ProducerIdControl:
        from ottla.controller.producer_ids import ProducerIdControl

        return ProducerIdControl(self.image)
