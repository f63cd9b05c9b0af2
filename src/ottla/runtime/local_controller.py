"""The controller's operations, by request, on the node where its machine runs."""

from asyncio import Future
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ottla.controller.machine import ControllerMachine
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.machine_runtime import MachineRuntime


class At(NamedTuple):
    """When an operation runs."""

    now_ms: int
    next_offset: int  # Of its first record.


# By the name of the request, whose module is not loaded before it is needed.
OPERATIONS: Final[dict[str, Callable[[ControllerMachine, Any, At], Result[Any]]]] = {
    "AllocateProducerIdsRequest": lambda machine, request, _: machine.allocate_producer_ids(
        request
    ),
    "AlterConfigsRequest": lambda machine, request, _: machine.alter_configs(request),
    "AlterPartitionRequest": lambda machine, request, _: machine.alter_partition(request),
    "AlterPartitionReassignmentsRequest": lambda machine, request, _: (
        machine.alter_partition_reassignments(request)
    ),
    "AssignReplicasToDirsRequest": lambda machine, request, _: machine.assign_replicas_to_dirs(
        request
    ),
    "BrokerHeartbeatRequest": lambda machine, request, at: machine.broker_heartbeat(
        request, at.now_ms, at.next_offset
    ),
    "BrokerRegistrationRequest": lambda machine, request, at: machine.register_broker(
        request, at.next_offset
    ),
    "CreatePartitionsRequest": lambda machine, request, _: machine.create_partitions(request),
    "CreateTopicsRequest": lambda machine, request, _: machine.create_topics(request),
    "DeleteTopicsRequest": lambda machine, request, _: machine.delete_topics(request),
    "ElectLeadersRequest": lambda machine, request, _: machine.elect_leaders(request),
    "IncrementalAlterConfigsRequest": lambda machine, request, _: machine.incremental_alter_configs(
        request
    ),
    "ListPartitionReassignmentsRequest": lambda machine, request, _: (
        machine.list_partition_reassignments(request)
    ),
    "UnregisterBrokerRequest": lambda machine, request, _: machine.unregister_broker(request),
    "UpdateFeaturesRequest": lambda machine, request, _: machine.update_features(request),
}


class LocalController:
    def __init__(self, runtime: Callable[[], MachineRuntime[ControllerMachine] | None]) -> None:
        """`runtime` gives None while another node is the controller."""
        self._runtime = runtime

    def call(self, request: object) -> "Future[Any]":
        """The future has the response once it is committed; ApiError when all is refused."""
        operation = OPERATIONS[type(request).__name__]
        runtime = self._runtime()
        if runtime is None:
            raise ApiError(ErrorCode.not_controller, "another node is the controller")
        return runtime.submit(
            lambda machine, now_ms: operation(machine, request, At(now_ms, runtime.next_offset))
        )
