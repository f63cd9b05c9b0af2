"""The controller as the rest of a node calls it, whichever node it runs on.

A method stands for one request. What is called is `LocalController.call` where this node leads the
quorum; the operations are listed there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

    from ottla.protocol.messages.update_features import UpdateFeaturesResponse

# The newest request entity in, the newest response entity out; ApiError when all is refused.
Call = Callable[[Any], Awaitable[Any]]


class ControllerClient:
    """Each call is answered when it is committed, and this node's image has it by then."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def create_topics(self, request: CreateTopicsRequest) -> Awaitable[CreateTopicsResponse]:
        return self._call(request)

    def delete_topics(self, request: DeleteTopicsRequest) -> Awaitable[DeleteTopicsResponse]:
        return self._call(request)

    def create_partitions(
        self, request: CreatePartitionsRequest
    ) -> Awaitable[CreatePartitionsResponse]:
        return self._call(request)

    def alter_configs(self, request: AlterConfigsRequest) -> Awaitable[AlterConfigsResponse]:
        return self._call(request)

    def incremental_alter_configs(
        self, request: IncrementalAlterConfigsRequest
    ) -> Awaitable[IncrementalAlterConfigsResponse]:
        return self._call(request)

    def register_broker(
        self, request: BrokerRegistrationRequest
    ) -> Awaitable[BrokerRegistrationResponse]:
        return self._call(request)

    def broker_heartbeat(
        self, request: BrokerHeartbeatRequest
    ) -> Awaitable[BrokerHeartbeatResponse]:
        return self._call(request)

    def unregister_broker(
        self, request: UnregisterBrokerRequest
    ) -> Awaitable[UnregisterBrokerResponse]:
        return self._call(request)

    def allocate_producer_ids(
        self, request: AllocateProducerIdsRequest
    ) -> Awaitable[AllocateProducerIdsResponse]:
        return self._call(request)

    def assign_replicas_to_dirs(
        self, request: AssignReplicasToDirsRequest
    ) -> Awaitable[AssignReplicasToDirsResponse]:
        return self._call(request)

    def alter_partition(self, request: AlterPartitionRequest) -> Awaitable[AlterPartitionResponse]:
        return self._call(request)

    def elect_leaders(self, request: ElectLeadersRequest) -> Awaitable[ElectLeadersResponse]:
        return self._call(request)

    def alter_partition_reassignments(
        self, request: AlterPartitionReassignmentsRequest
    ) -> Awaitable[AlterPartitionReassignmentsResponse]:
        return self._call(request)

    def list_partition_reassignments(
        self, request: ListPartitionReassignmentsRequest
    ) -> Awaitable[ListPartitionReassignmentsResponse]:
        return self._call(request)

    def update_features(self, request: UpdateFeaturesRequest) -> Awaitable[UpdateFeaturesResponse]:
        return self._call(request)
