"""SyncGroup, Heartbeat and LeaveGroup of a classic group."""

from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.heartbeat.v4.response import HeartbeatResponse
from kio.schema.leave_group.v5.request import LeaveGroupRequest, MemberIdentity
from kio.schema.leave_group.v5.response import LeaveGroupResponse, MemberResponse
from kio.schema.sync_group.v5.request import SyncGroupRequest
from kio.schema.sync_group.v5.response import SyncGroupResponse

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.member import ClassicMember
from ottla.groups.classic.rebalance import ClassicRebalance
from ottla.groups.classic.responses import sync_error, synced
from ottla.groups.classic.state import ClassicState
from ottla.groups.operation_effects import Effects
from ottla.groups.state import CoordinatorState
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE


class ClassicMembership:
    def __init__(self, state: CoordinatorState, rebalance: ClassicRebalance) -> None:
        self._state = state
        self._rebalance = rebalance

    def sync_group(self, request: SyncGroupRequest, now_ms: int) -> Result[SyncGroupResponse]:
        group = self._known_group(request.group_id)
        group.validate_member(request.member_id, request.group_instance_id)
        group.validate_generation(request.generation_id)
        _validate_protocol(request.protocol_type, group.protocol_type)
        _validate_protocol(request.protocol_name, group.protocol)
        member = group.members[request.member_id]
        if group.state is ClassicState.PREPARING_REBALANCE:
            return Result(sync_error(ErrorCode.rebalance_in_progress))
        self._rebalance.on_synced(group, member.member_id)
        if group.state is ClassicState.STABLE:
            return Result(synced(group, member))
        if group.is_leader(member.member_id):
            return self._assign(group, member, request, now_ms)
        effects = Effects()
        return effects.result(self._rebalance.park_sync(member, effects))

    def _assign(
        self, group: ClassicGroup, leader: ClassicMember, request: SyncGroupRequest, now_ms: int
    ) -> Result[SyncGroupResponse]:
        """The leader's assignment makes the group stable; a member missing from it gets none."""
        effects = Effects()
        assignments = {item.member_id: item.assignment for item in request.assignments}
        group.transition_to(ClassicState.STABLE, now_ms)
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            if member.awaiting_sync is not None:
                effects.answer(member.awaiting_sync, synced(group, member))
                member.awaiting_sync = None
                self._rebalance.keep_alive(group, member, now_ms)
        self._rebalance.keep_alive(group, leader, now_ms)
        effects.records.append(group.to_record())
        return effects.result(synced(group, leader))

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> Result[HeartbeatResponse]:
        group = self._known_group(request.group_id)
        group.validate_member(request.member_id, request.group_instance_id)
        group.validate_generation(request.generation_id)
        self._rebalance.keep_alive(group, group.members[request.member_id], now_ms)
        rebalances = group.state is ClassicState.PREPARING_REBALANCE
        error = ErrorCode.rebalance_in_progress if rebalances else ErrorCode.none
        return Result(HeartbeatResponse(throttle_time=NO_THROTTLE, error_code=error))

    def leave_group(self, request: LeaveGroupRequest, now_ms: int) -> Result[LeaveGroupResponse]:
        _validate_group_id(request.group_id)
        group = self._state.classic_group(request.group_id)
        if group is None:
            return Result(leave_response(tuple(map(_unknown, request.members))))
        effects = Effects()
        count_before = len(group.members)
        responses = tuple(
            MemberResponse(
                member_id=identity.member_id,
                group_instance_id=identity.group_instance_id,
                error_code=self._leave(group, identity, now_ms, effects),
            )
            for identity in request.members
        )
        if len(group.members) < count_before:
            self._rebalance.after_removal(group, now_ms, effects)
        return effects.result(leave_response(responses))

    def _leave(
        self, group: ClassicGroup, identity: MemberIdentity, now_ms: int, effects: Effects
    ) -> ErrorCode:
        """An operator may remove a static member by its instance id alone."""
        member_id = identity.member_id
        if not member_id and identity.group_instance_id is not None:
            member_id = group.static_members.get(identity.group_instance_id, "")
        if member_id in group.pending_members:
            self._rebalance.remove_pending(group, member_id, now_ms, effects)
            return ErrorCode.none
        try:
            group.validate_member(member_id, identity.group_instance_id)
        except ApiError as error:
            return error.code
        self._rebalance.remove(group, group.members[member_id], effects)
        return ErrorCode.none

    def _known_group(self, group_id: str) -> ClassicGroup:
        _validate_group_id(group_id)
        group = self._state.classic_group(group_id)
        if group is None:
            raise ApiError(ErrorCode.unknown_member_id, "there is no such group")
        return group


def _validate_group_id(group_id: str) -> None:
    if not group_id:
        raise ApiError(ErrorCode.invalid_group_id, "the group id is empty")


def _unknown(identity: MemberIdentity) -> MemberResponse:
    return MemberResponse(
        member_id=identity.member_id,
        group_instance_id=identity.group_instance_id,
        error_code=ErrorCode.unknown_member_id,
    )


def leave_response(responses: tuple[MemberResponse, ...]) -> LeaveGroupResponse:
    return LeaveGroupResponse(
        throttle_time=NO_THROTTLE, error_code=ErrorCode.none, members=responses
    )


def _validate_protocol(claimed: str | None, actual: str | None) -> None:
    if claimed is not None and claimed != actual:
        raise ApiError(
            ErrorCode.inconsistent_group_protocol,
            f"the group has agreed on {actual}, not {claimed}",
        )
