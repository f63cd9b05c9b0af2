"""ShareGroupHeartbeat: joining, staying in and leaving a share group.

A member sends only what has changed since its last heartbeat, and gets its assignment when that has
changed or when it sends its subscription. An epoch that is neither its own nor the previous one
fences it: it must join again.
"""

from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest
from kio.schema.share_group_heartbeat.v1.response import (
    Assignment as ResponseAssignment,
)
from kio.schema.share_group_heartbeat.v1.response import (
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from kio.static.primitive import i32

from ottla.groups.caller import Caller
from ottla.groups.modern.sessions import MemberSessions
from ottla.groups.modern.validation import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    fenced,
    no_group,
    require,
    validate_size,
)
from ottla.groups.partitions import Assignment, by_topic
from ottla.groups.share.group import Draft, ShareGroup
from ottla.groups.share.member import ShareMember
from ottla.groups.share.target import assignable, assignable_hash, write_target
from ottla.groups.state import CoordinatorState
from ottla.machine.result import Result
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import NO_THROTTLE, milliseconds


class ShareMemberSessions(MemberSessions[ShareGroup]):
    def __init__(self, state: CoordinatorState) -> None:
        super().__init__(state, state.share_groups, ShareGroup.type_name)

    def _timeout_ms(self, group_id: str, member: ShareMember) -> int:  # noqa: ARG002
        return self._state.share_config(group_id).session_timeout_ms

    def removal(self, group: ShareGroup, member_id: str, now_ms: int) -> Result[None]:  # noqa: ARG002
        self.end(group.group_id, member_id)
        draft = Draft(group)
        draft.write(*group.member_tombstones(member_id))
        topics_hash = assignable_hash(assignable(draft.group, self._state.catalog))
        draft.write(draft.group.epoch_record(draft.group.epoch + 1, topics_hash))
        return Result(None, tuple(draft.records))


class ShareHeartbeat:
    def __init__(self, state: CoordinatorState) -> None:
        self._state = state
        self.sessions = ShareMemberSessions(state)

    def heartbeat(
        self, request: ShareGroupHeartbeatRequest, caller: Caller, now_ms: int
    ) -> Result[ShareGroupHeartbeatResponse]:
        _validate(request)
        if request.member_epoch == LEAVE_EPOCH:
            return self._leave(request, now_ms)
        draft = Draft(self._open(request))
        before = self._find(draft.group, request)
        member = _updated(before, request, caller)
        subscription_changed = draft.write_subscriber(member)
        self._maybe_begin_epoch(draft, subscription_changed=subscription_changed)
        member = self._advance(draft, member, now_ms)
        self.sessions.keep_alive(request.group_id, member, now_ms)
        tell = request.subscribed_topic_names is not None or member.assigned != before.assigned
        pace = self._state.share_config(request.group_id).pace
        interval_ms = pace.next_heartbeat_ms(draft.group, now_ms)
        assigned = member.assigned if tell else None
        response = _response(member.member_id, member.epoch, interval_ms, assigned)
        return Result(response, tuple(draft.records))

    def _open(self, request: ShareGroupHeartbeatRequest) -> ShareGroup:
        group = self._state.share_groups.get(request.group_id)
        if group is not None:
            return group
        other = self._state.group(request.group_id)
        if other is not None or request.member_epoch != JOIN_EPOCH:
            raise no_group("share", request.group_id, other)
        return ShareGroup(request.group_id)

    def _find(self, group: ShareGroup, request: ShareGroupHeartbeatRequest) -> ShareMember:
        member_id = request.member_id
        if request.member_epoch == JOIN_EPOCH:
            validate_size(group, member_id, self._state.share_config(group.group_id).max_size)
            return group.members.get(member_id) or ShareMember(member_id=member_id)
        member = group.member(member_id)
        if request.member_epoch not in {member.epoch, member.previous_epoch}:
            raise fenced("share", request.member_epoch, member.epoch)
        return member

    # Steps.

    def _maybe_begin_epoch(self, draft: Draft, *, subscription_changed: bool) -> None:
        group_id, version = draft.group.group_id, self._state.catalog.topics_version
        if not subscription_changed and self._state.topics_seen.get(group_id) == version:
            return
        topics_hash = assignable_hash(assignable(draft.group, self._state.catalog))
        if subscription_changed or topics_hash != draft.group.metadata_hash:
            draft.write(draft.group.epoch_record(draft.group.epoch + 1, topics_hash))
        self._state.topics_seen[group_id] = version

    def _advance(self, draft: Draft, member: ShareMember, now_ms: int) -> ShareMember:
        if self._state.share_config(draft.group.group_id).pace.is_target_due(draft.group, now_ms):
            write_target(draft, self._state.catalog, now_ms)
        group = draft.group
        moved = member.moved_to(group.assignment_epoch, group.target(member.member_id))
        draft.write_assignment(moved)
        return moved

    # Leaving.

    def _leave(
        self, request: ShareGroupHeartbeatRequest, now_ms: int
    ) -> Result[ShareGroupHeartbeatResponse]:
        group = self._state.share_groups.get(request.group_id)
        if group is None:
            raise no_group("share", request.group_id)
        member = group.member(request.member_id)
        response = _response(member.member_id, LEAVE_EPOCH)
        return Result(response, self.sessions.removal(group, member.member_id, now_ms).records)


def _validate(request: ShareGroupHeartbeatRequest) -> None:
    require(bool(request.group_id), "GroupId can't be empty.")
    require(bool(request.member_id), "MemberId can't be empty.")
    require(request.rack_id != "", "RackId can't be empty.")
    require(request.member_epoch >= LEAVE_EPOCH, "MemberEpoch is invalid.")
    if request.member_epoch == JOIN_EPOCH:
        require(
            bool(request.subscribed_topic_names),
            "SubscribedTopicNames must be set in first request.",
        )


def _updated(
    member: ShareMember, request: ShareGroupHeartbeatRequest, caller: Caller
) -> ShareMember:
    """Fields missing from the request stay unchanged."""
    names = request.subscribed_topic_names
    return member.updated(
        rack_id=request.rack_id,
        client_id=caller.client_id,
        client_host=caller.client_host,
        subscribed_topic_names=None if names is None else tuple(sorted(set(names))),
    )


def _response(
    member_id: str, epoch: int, interval_ms: int = 0, assigned: Assignment | None = None
) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        member_id=member_id,
        member_epoch=i32(epoch),
        heartbeat_interval=milliseconds(interval_ms),
        assignment=None if assigned is None else _assignment(assigned),
    )


def _assignment(assigned: Assignment) -> ResponseAssignment:
    return ResponseAssignment(
        topic_partitions=tuple(
            TopicPartitions(topic_id=topic_id, partitions=tuple(map(i32, partitions)))
            for topic_id, partitions in by_topic(assigned).items()
        )
    )
