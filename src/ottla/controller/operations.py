"""The controller's operations, by API key: the single list of what its machine can do.

Any node accepts these requests and forwards them to the active controller. To add an operation,
write its method and add a line here; its handler calls `broker.controller.call(request)`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from ottla.security.principal import ANONYMOUS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ottla.controller.machine import ControllerMachine
    from ottla.controller.mutations import Caller, MutationQuota
    from ottla.machine.result import Result

Request = TypeVar("Request")
Response = TypeVar("Response")


class At(NamedTuple):
    """The circumstances of an operation."""

    now_ms: int
    next_offset: int  # Of its first record.
    caller: Caller | None = None  # None for a request of a node itself.


class Operation(NamedTuple, Generic[Request, Response]):
    # Returns the method for the newest request entity; its owner may be created on first use.
    method: Callable[[ControllerMachine, At], Callable[[Request], Result[Response]]]
    # Sent only by brokers, none of which waits until the effect is in the image of the node that
    # forwarded it.
    is_internal: bool = False


def _quota(machine: ControllerMachine, at: At) -> MutationQuota:
    return machine.mutations.of(at.caller, at.now_ms)


def _who_and_when(at: At) -> dict[str, Any]:
    """Requests of nodes themselves are anonymous."""
    principal = ANONYMOUS if at.caller is None else at.caller.principal
    return {"caller": principal, "now_ms": at.now_ms}


OPERATIONS: Final[Mapping[int, Operation[Any, Any]]] = {
    19: Operation(
        lambda machine, at: partial(machine.topics.create_topics, quota=_quota(machine, at))
    ),
    20: Operation(
        lambda machine, at: partial(machine.topics.delete_topics, quota=_quota(machine, at))
    ),
    30: Operation(lambda machine, _: machine.acls.create_acls),
    31: Operation(lambda machine, _: machine.acls.delete_acls),
    33: Operation(lambda machine, _: machine.configs.alter_configs),
    37: Operation(
        lambda machine, at: partial(machine.topics.create_partitions, quota=_quota(machine, at))
    ),
    38: Operation(
        lambda machine, at: partial(machine.tokens.create_delegation_token, **_who_and_when(at))
    ),
    39: Operation(
        lambda machine, at: partial(machine.tokens.renew_delegation_token, **_who_and_when(at))
    ),
    40: Operation(
        lambda machine, at: partial(machine.tokens.expire_delegation_token, **_who_and_when(at))
    ),
    43: Operation(lambda machine, _: machine.election_requests.elect_leaders),
    44: Operation(lambda machine, _: machine.configs.incremental_alter_configs),
    45: Operation(lambda machine, _: machine.reassignments.alter_partition_reassignments),
    46: Operation(lambda machine, _: machine.reassignments.list_partition_reassignments),
    49: Operation(lambda machine, _: machine.quotas.alter_client_quotas),
    51: Operation(lambda machine, _: machine.users.alter_user_scram_credentials),
    56: Operation(lambda machine, _: machine.in_sync.alter_partition, is_internal=True),
    57: Operation(lambda machine, _: machine.features.update_features),
    62: Operation(
        lambda machine, at: partial(machine.brokers.register_broker, next_offset=at.next_offset),
        is_internal=True,
    ),
    63: Operation(
        lambda machine, at: partial(
            machine.brokers.broker_heartbeat, now_ms=at.now_ms, next_offset=at.next_offset
        ),
        is_internal=True,
    ),
    64: Operation(lambda machine, _: machine.brokers.unregister_broker),
    67: Operation(lambda machine, _: machine.producer_ids.allocate_producer_ids, is_internal=True),
    73: Operation(lambda machine, _: machine.directories.assign_replicas_to_dirs, is_internal=True),
}

# About the quorum itself: also forwarded, but answered by the replica that leads it.
QUORUM_KEYS: Final = frozenset({55, 80, 81})

FORWARDED_KEYS: Final = QUORUM_KEYS | OPERATIONS.keys()
INTERNAL_KEYS: Final = frozenset(
    key for key, operation in OPERATIONS.items() if operation.is_internal
)
