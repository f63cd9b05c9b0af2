"""Members of a consumer group that still use the classic protocol.

They send JoinGroup, SyncGroup, Heartbeat and LeaveGroup as usual, and none of them is the leader:
JoinGroup answers at once with the member's epoch as its generation, SyncGroup with what the
coordinator has assigned. Whenever a step is due, Heartbeat tells them to rejoin, and the owned
partitions in their JoinGroup confirm that they gave up the rest.
"""

from dataclasses import replace

from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.heartbeat.v4.response import HeartbeatResponse
from kio.schema.join_group.v9.request import JoinGroupRequest
from kio.schema.join_group.v9.response import JoinGroupResponse
from kio.schema.leave_group.v5.request import LeaveGroupRequest, MemberIdentity
from kio.schema.leave_group.v5.response import LeaveGroupResponse, MemberResponse
from kio.schema.sync_group.v5.request import SyncGroupRequest
from kio.schema.sync_group.v5.response import SyncGroupResponse
from kio.static.primitive import i32

from ottla.groups.caller import Caller
from ottla.groups.classic.group import CONSUMER_PROTOCOL_TYPE
from ottla.groups.classic.join import MEMBER_ID_REQUIRED_SINCE, protocols_of, rebalance_timeout_ms
from ottla.groups.classic.membership import leave_response
from ottla.groups.classic.responses import join_error, sync_error
from ottla.groups.consumer.group import ConsumerGroup, Draft
from ottla.groups.consumer.heartbeat import find_member, succeed
from ottla.groups.consumer.member import ConsumerMember
from ottla.groups.consumer.migration import Migration, to_ids, to_names
from ottla.groups.consumer.progress import Progress
from ottla.groups.consumer.records import ClassicMemberMetadata, ClassicProtocol
from ottla.groups.consumer.sessions import ConsumerSessions
from ottla.groups.consumer_protocol import MemberSubscription, parse_subscription, write_assignment
from ottla.groups.modern.reconciliation import MemberState
from ottla.groups.modern.validation import validate_size
from ottla.groups.operation_effects import Effects
from ottla.groups.state import CoordinatorState
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE, in_milliseconds


class ClassicMembers:
    def __init__(
        self,
        state: CoordinatorState,
        progress: Progress,
        sessions: ConsumerSessions,
        migration: Migration,
    ) -> None:
        self._state = state
        self._progress = progress
        self._sessions = sessions
        self._migration = migration

    def join_group(
        self, group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, now_ms: int
    ) -> Result[JoinGroupResponse]:
        self._validate_join(group, request)
        instance_id = request.group_instance_id
        prefix = instance_id or caller.client_id
        member_id = request.member_id or f"{prefix}-{self._state.new_uuid()}"
        needs_id = caller.api_version >= MEMBER_ID_REQUIRED_SINCE
        if not request.member_id and needs_id and instance_id is None:
            return Result(join_error(ErrorCode.member_id_required, member_id))
        subscription = _subscription(request)
        draft = Draft(group)
        before = self._find(draft, request, member_id)
        member = _updated(before, request, subscription, caller)
        changed = draft.write_subscriber(member)
        owned = to_ids(subscription.owned_partitions, self._state.catalog)
        member = self._progress.advance(
            draft,
            member,
            owned,
            now_ms,
            subscription_changed=changed,
            may_describe=caller.may_describe,
        )
        effects = Effects()
        if self._migration.maybe_downgrade(draft, now_ms, effects):
            self._sessions.end_all(group)
        else:
            effects.records.extend(draft.records)
            self._sessions.keep_alive(group.group_id, member, now_ms)
            self._sessions.expect_sync(group.group_id, member, now_ms)
        return effects.result(_joined(member))

    def _validate_join(self, group: ConsumerGroup, request: JoinGroupRequest) -> None:
        if self._state.config.consumer_migration_policy == "disabled":
            raise ApiError(
                ErrorCode.inconsistent_group_protocol,
                f"Cannot join the consumer group {group.group_id} with the classic protocol because"
                " the group migration is disabled.",
            )
        validate_size(group, request.member_id, self._state.config.consumer_max_size)
        offered = {protocol.name for protocol in request.protocols}
        if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not offered & _common(group, offered):
            raise ApiError(
                ErrorCode.inconsistent_group_protocol,
                "the other members have no protocol in common with this one",
            )

    def _find(self, draft: Draft, request: JoinGroupRequest, member_id: str) -> ConsumerMember:
        group, instance_id = draft.group, request.group_instance_id
        if instance_id is not None:
            predecessor = group.static_member(instance_id)
            if request.member_id:
                return find_member(group, member_id, instance_id)
            if predecessor is not None:
                return succeed(draft, predecessor, member_id, self._sessions)
        return group.members.get(member_id) or ConsumerMember(member_id=member_id)

    def sync_group(
        self, group: ConsumerGroup, request: SyncGroupRequest, now_ms: int
    ) -> Result[SyncGroupResponse]:
        member = _validated(
            group, request.member_id, request.group_instance_id, request.generation_id
        )
        assert member.classic is not None
        protocol = member.classic.supported_protocols[0]
        _validate_protocol(request.protocol_type, CONSUMER_PROTOCOL_TYPE)
        _validate_protocol(request.protocol_name, protocol.name)
        if self._has_newer_target(group, member, now_ms) and not _has_to_revoke(member):
            self._sessions.expect_rejoin(group.group_id, member, now_ms)
            return Result(sync_error(ErrorCode.rebalance_in_progress))
        self._sessions.on_synced(group.group_id, member.member_id)
        self._sessions.keep_alive(group.group_id, member, now_ms)
        version = parse_subscription(protocol.metadata).version
        names = to_names(member.assigned, self._state.catalog)
        return Result(
            SyncGroupResponse(
                throttle_time=NO_THROTTLE,
                error_code=ErrorCode.none,
                protocol_type=CONSUMER_PROTOCOL_TYPE,
                protocol_name=protocol.name,
                assignment=write_assignment(version, names),
            )
        )

    def heartbeat(
        self, group: ConsumerGroup, request: HeartbeatRequest, now_ms: int
    ) -> Result[HeartbeatResponse]:
        member = _validated(
            group, request.member_id, request.group_instance_id, request.generation_id
        )
        self._sessions.keep_alive(group.group_id, member, now_ms)
        error = ErrorCode.none
        if self._has_newer_target(group, member, now_ms) or _has_a_step_to_take(group, member):
            self._sessions.expect_rejoin(group.group_id, member, now_ms)
            error = ErrorCode.rebalance_in_progress
        return Result(HeartbeatResponse(throttle_time=NO_THROTTLE, error_code=error))

    def _has_newer_target(self, group: ConsumerGroup, member: ConsumerMember, now_ms: int) -> bool:
        """Whether a newer target exists, or would if the member joined now."""
        if member.epoch < group.assignment_epoch:
            return True
        return self._state.consumer_config(group.group_id).pace.is_target_due(group, now_ms)

    def leave_group(
        self, group: ConsumerGroup, request: LeaveGroupRequest, now_ms: int
    ) -> Result[LeaveGroupResponse]:
        leaving: dict[str, None] = {}
        responses = tuple(
            MemberResponse(
                member_id=identity.member_id,
                group_instance_id=identity.group_instance_id,
                error_code=_leave(group, identity, leaving),
            )
            for identity in request.members
        )
        effects = Effects()
        if leaving:
            self._sessions.remove(group, leaving, now_ms, effects)
        return effects.result(leave_response(responses))


def _common(group: ConsumerGroup, offered: set[str]) -> set[str]:
    """The offered protocols that every classic member supports."""
    common = set(offered)
    for member in group.members.values():
        if member.classic is not None:
            common &= {protocol.name for protocol in member.classic.supported_protocols}
    return common


def _subscription(request: JoinGroupRequest) -> MemberSubscription:
    try:
        return parse_subscription(request.protocols[0].metadata)
    except ValueError as error:
        raise ApiError(
            ErrorCode.inconsistent_group_protocol, f"the subscription cannot be read: {error}"
        ) from None


def _updated(
    member: ConsumerMember,
    request: JoinGroupRequest,
    subscription: MemberSubscription,
    caller: Caller,
) -> ConsumerMember:
    protocols = tuple(
        ClassicProtocol(name=name, metadata=metadata) for name, metadata in protocols_of(request)
    )
    return replace(
        member,
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        client_id=caller.client_id,
        client_host=caller.client_host,
        subscribed_topic_names=tuple(sorted(set(subscription.topics))),
        subscribed_topic_regex=None,
        rebalance_timeout_ms=rebalance_timeout_ms(request),
        server_assignor=None,
        classic=ClassicMemberMetadata(
            session_timeout_ms=in_milliseconds(request.session_timeout),
            supported_protocols=protocols,
        ),
    )


def _joined(member: ConsumerMember) -> JoinGroupResponse:
    assert member.classic is not None
    return JoinGroupResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        generation_id=i32(member.epoch),
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=member.classic.supported_protocols[0].name,
        leader="",
        member_id=member.member_id,
        members=(),
    )


def _validated(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> ConsumerMember:
    member = find_member(group, member_id, instance_id)
    if not member.uses_classic_protocol:
        raise ApiError(
            ErrorCode.unknown_member_id, f"{member_id} does not speak the classic protocol"
        )
    if generation != member.epoch:
        raise ApiError(
            ErrorCode.illegal_generation, f"the member's epoch is {member.epoch}, not {generation}"
        )
    return member


def _validate_protocol(claimed: str | None, actual: str) -> None:
    if claimed is not None and claimed != actual:
        raise ApiError(
            ErrorCode.inconsistent_group_protocol, f"the member uses {actual}, not {claimed}"
        )


def _has_to_revoke(member: ConsumerMember) -> bool:
    return member.state is MemberState.UNREVOKED


def _has_a_step_to_take(group: ConsumerGroup, member: ConsumerMember) -> bool:
    if _has_to_revoke(member):
        return True
    wanted = group.target(member.member_id) - member.assigned
    return any(group.holder(partition) is None for partition in wanted)


def _leave(group: ConsumerGroup, identity: MemberIdentity, leaving: dict[str, None]) -> ErrorCode:
    """An operator may remove any member, and a static one by its instance id alone."""
    try:
        instance_id = identity.group_instance_id
        known = group.static_members.get(instance_id, "") if instance_id is not None else ""
        member = find_member(group, identity.member_id or known, instance_id)
    except ApiError as error:
        return error.code
    leaving[member.member_id] = None
    return ErrorCode.none
