"""What is the same in the heartbeats of all groups that the coordinator assigns."""

from typing import Any

from ottla.groups.group import Group
from ottla.groups.modern.group import ModernGroup
from ottla.groups.modern.reconciliation import ReconcilingMember
from ottla.protocol.errors import ApiError, ErrorCode

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEFT_TEMPORARILY_EPOCH = -2  # A static member that will return with the same instance id.


def require(condition: bool, problem: str) -> None:
    if not condition:
        raise ApiError(ErrorCode.invalid_request, problem)


def no_group(kind: str, group_id: str, other: Group | None = None) -> ApiError:
    """`other` has the group id, but is of another type."""
    problem = (
        f"there is no {kind} group {group_id}"
        if other is None
        else f"{group_id} is not a {kind} group, but of type {other.type_name}"
    )
    return ApiError(ErrorCode.group_id_not_found, problem)


def validate_size(group: ModernGroup[Any, Any], member_id: str, size_max: int) -> None:
    if member_id not in group.members and len(group.members) >= size_max:
        raise ApiError(
            ErrorCode.group_max_size_reached, f"the group has {size_max} members already"
        )


def validate_epoch(
    kind: str, member: ReconcilingMember[Any], epoch: int, owned: Any | None
) -> None:
    """The previous epoch is accepted while the member owns only what it was assigned."""
    if epoch == member.epoch:
        return
    lost_response = (
        epoch == member.previous_epoch and owned is not None and owned <= member.assigned
    )
    if epoch > member.epoch or not lost_response:
        raise fenced(kind, epoch, member.epoch)


def fenced(kind: str, epoch: int, known_epoch: int) -> ApiError:
    size = "greater" if epoch > known_epoch else "smaller"
    return ApiError(
        ErrorCode.fenced_member_epoch,
        f"The {kind} group member has a {size} member epoch ({epoch}) than the one known by the"
        f" group coordinator ({known_epoch}). The member must abandon all its partitions and"
        " rejoin.",
    )
