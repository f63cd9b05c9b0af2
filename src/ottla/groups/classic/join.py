"""JoinGroup of a classic group.

A client without a member id gets one: from v4 on it is given the id and must join again with it
(KIP-394), so that clients that gave up in between do not become members. A static member (KIP-345)
has an instance id, becomes a member at once, and replaces the member with the same instance id.

The first join of a group writes the group's empty record before any client gets an id, so that from
then on the group is known to the log, whichever broker coordinates it.
"""

from kio.schema.join_group.v9.request import JoinGroupRequest
from kio.schema.join_group.v9.response import JoinGroupResponse

from ottla.groups.caller import Caller
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.member import ClassicMember, Protocols
from ottla.groups.classic.rebalance import NEW_MEMBER_JOIN_TIMEOUT_MS, ClassicRebalance
from ottla.groups.classic.responses import join_error, joined
from ottla.groups.classic.state import ClassicState
from ottla.groups.classic.static import StaticMembers
from ottla.groups.operation_effects import Effects
from ottla.groups.state import CoordinatorState
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import in_milliseconds

MEMBER_ID_REQUIRED_SINCE = 4


class ClassicJoin:
    def __init__(self, state: CoordinatorState, rebalance: ClassicRebalance) -> None:
        self._state = state
        self._rebalance = rebalance
        self._static_members = StaticMembers(rebalance)

    def join_group(
        self, request: JoinGroupRequest, caller: Caller, now_ms: int
    ) -> Result[JoinGroupResponse]:
        group = self._state.classic_group(request.group_id)
        if group is None:
            if request.member_id:
                raise ApiError(ErrorCode.unknown_member_id, "there is no such group")
            return self._join_new(request, caller, now_ms)
        return self._join_existing(group, request, caller, now_ms)

    def _join_new(
        self, request: JoinGroupRequest, caller: Caller, now_ms: int
    ) -> Result[JoinGroupResponse]:
        group = ClassicGroup(request.group_id, now_ms)
        empty = group.to_record()
        result = self._join_existing(group, request, caller, now_ms)
        assert not result.records, "the first rebalance writes nothing before its assignment"
        return result._replace(records=(empty,))

    def _join_existing(
        self, group: ClassicGroup, request: JoinGroupRequest, caller: Caller, now_ms: int
    ) -> Result[JoinGroupResponse]:
        if not self._has_room(group, request.member_id):
            group.pending_members.discard(request.member_id)
            return Result(join_error(ErrorCode.group_max_size_reached, ""))
        if not group.supports(request.protocol_type, [item.name for item in request.protocols]):
            raise ApiError(
                ErrorCode.inconsistent_group_protocol,
                "the other members have no protocol in common with this one",
            )
        if request.member_id:
            return self._join_known(group, request, caller, now_ms)
        return self._join_unknown(group, request, caller, now_ms)

    def validate(self, request: JoinGroupRequest) -> None:
        """The checks for every group."""
        if not request.group_id:
            raise ApiError(ErrorCode.invalid_group_id, "the group id is empty")
        config, timeout_ms = self._state.config, in_milliseconds(request.session_timeout)
        if not config.min_session_timeout_ms <= timeout_ms <= config.max_session_timeout_ms:
            raise ApiError(
                ErrorCode.invalid_session_timeout,
                f"the session timeout is {timeout_ms} ms; this broker takes"
                f" {config.min_session_timeout_ms} to {config.max_session_timeout_ms}",
            )

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """While a rebalance gathers members, only those that have rejoined count."""
        size_max = self._state.config.max_size
        member = group.members.get(member_id)
        if group.is_empty:
            return True
        if group.state is ClassicState.PREPARING_REBALANCE:
            has_rejoined = member is not None and member.awaiting_join is not None
            return has_rejoined or group.awaiting_join_count < size_max
        return member is not None or len(group.members) < size_max

    def _join_unknown(
        self, group: ClassicGroup, request: JoinGroupRequest, caller: Caller, now_ms: int
    ) -> Result[JoinGroupResponse]:
        instance_id = request.group_instance_id
        member_id = f"{instance_id or caller.client_id}-{self._state.new_uuid()}"
        if instance_id is None and caller.api_version >= MEMBER_ID_REQUIRED_SINCE:
            return self._require_member_id(group, request, member_id, now_ms)
        if instance_id in group.static_members:
            member = _new_member(request, caller, member_id)
            return self._static_members.replace(group, member, caller, now_ms)
        return self._add(group, request, caller, member_id, now_ms)

    def _require_member_id(
        self, group: ClassicGroup, request: JoinGroupRequest, member_id: str, now_ms: int
    ) -> Result[JoinGroupResponse]:
        self._state.classic_groups[group.group_id] = group
        group.pending_members.add(member_id)
        self._rebalance.expect(group, member_id, now_ms + in_milliseconds(request.session_timeout))
        return Result(join_error(ErrorCode.member_id_required, member_id))

    def _join_known(
        self, group: ClassicGroup, request: JoinGroupRequest, caller: Caller, now_ms: int
    ) -> Result[JoinGroupResponse]:
        if request.member_id in group.pending_members:
            if request.group_instance_id is not None:
                raise ApiError(
                    ErrorCode.invalid_request, "this member id was given to a dynamic member"
                )
            return self._add(group, request, caller, request.member_id, now_ms)
        group.validate_member(request.member_id, request.group_instance_id)
        member = group.members[request.member_id]
        if _must_rebalance(group, member, protocols_of(request)):
            return self._rejoin(group, member, request, now_ms)
        # The client missed the response to its last JoinGroup, or rejoins needlessly.
        leads = group.is_leader(member.member_id)
        completing = group.state is ClassicState.COMPLETING_REBALANCE
        return Result(joined(group, member.member_id, with_members=leads and completing))

    def _add(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        caller: Caller,
        member_id: str,
        now_ms: int,
    ) -> Result[JoinGroupResponse]:
        effects = Effects()
        self._state.classic_groups[group.group_id] = group
        member = _new_member(request, caller, member_id)
        group.add(member, request.protocol_type, now_ms)
        parked = self._rebalance.park_join(group, member, effects)
        self._rebalance.keep_alive(group, member, now_ms, NEW_MEMBER_JOIN_TIMEOUT_MS)
        self._rebalance.prepare_or_complete(group, now_ms, effects)
        return effects.result(parked)

    def _rejoin(
        self, group: ClassicGroup, member: ClassicMember, request: JoinGroupRequest, now_ms: int
    ) -> Result[JoinGroupResponse]:
        effects = Effects()
        group.update(
            member,
            protocols_of(request),
            in_milliseconds(request.session_timeout),
            rebalance_timeout_ms(request),
        )
        parked = self._rebalance.park_join(group, member, effects)
        self._rebalance.prepare_or_complete(group, now_ms, effects)
        return effects.result(parked)


def _must_rebalance(group: ClassicGroup, member: ClassicMember, protocols: Protocols) -> bool:
    """The leader rejoins to request a new assignment, others when their metadata changed."""
    if group.state is ClassicState.PREPARING_REBALANCE or member.protocols != protocols:
        return True
    return group.state is ClassicState.STABLE and group.is_leader(member.member_id)


def _new_member(request: JoinGroupRequest, caller: Caller, member_id: str) -> ClassicMember:
    return ClassicMember(
        member_id=member_id,
        group_instance_id=request.group_instance_id,
        client_id=caller.client_id,
        client_host=caller.client_host,
        session_timeout_ms=in_milliseconds(request.session_timeout),
        rebalance_timeout_ms=rebalance_timeout_ms(request),
        protocols=protocols_of(request),
        is_new=True,
    )


def protocols_of(request: JoinGroupRequest) -> Protocols:
    """If two protocols have the same name, the first one counts."""
    named = {item.name: item.metadata for item in reversed(request.protocols)}
    return tuple(
        (item.name, named.pop(item.name)) for item in request.protocols if item.name in named
    )


def rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    """A client that sends none gets its session timeout."""
    timeout_ms = in_milliseconds(request.rebalance_timeout)
    return timeout_ms if timeout_ms >= 0 else in_milliseconds(request.session_timeout)
