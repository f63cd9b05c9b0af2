"""ShareGroupHeartbeat: joining, staying in and leaving a share group.

A member sends only what has changed since its last heartbeat, and gets its assignment when that has
changed or when it sends its subscription. An epoch that is neither its own nor the previous one
fences it: it must join again.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

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
from ottla.groups.modern.assignment_pace import Pace
from ottla.groups.modern.group import epoch_refusal
from ottla.groups.modern.target import write_member
from ottla.groups.partitions import Assignment, by_topic
from ottla.groups.record import Record
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.member import ShareMember
from ottla.groups.share.target import (
    Draft,
    assignable_hash,
    subscribed_partitions,
    write_target,
)
from ottla.groups.state import CoordinatorState
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE, milliseconds

JOIN_EPOCH = 0
LEAVE_EPOCH = -1


class ShareHeartbeat:
    def __init__(self, state: CoordinatorState) -> None:
        self._state = state

    def heartbeat(
        self, request: ShareGroupHeartbeatRequest, caller: Caller, now_ms: int
    ) -> Result[ShareGroupHeartbeatResponse]:
        _validate(request)
        if request.member_epoch == LEAVE_EPOCH:
            return self._leave(request)
        draft = Draft(self._open(request))
        before = self._find(draft.group, request)
        member = _updated(before, request, caller)
        subscription_changed = write_member(draft, member)
        self._maybe_begin_epoch(draft, subscription_changed=subscription_changed)
        member = self._advance(draft, member, now_ms)
        self._keep_alive(request.group_id, member.member_id, now_ms)
        tell = request.subscribed_topic_names is not None or member.assigned != before.assigned
        response = self._response(draft.group, member, now_ms, tell_assignment=tell)
        return Result(response, tuple(draft.records))

    def on_loaded(self, group: ShareGroup, now_ms: int) -> None:
        group_id = group.group_id
        timeout_ms = self._state.share_config(group_id).session_timeout_ms
        for member_id in group.members:
            deadline_ms = self._state.absences.begin(group_id, member_id, timeout_ms, now_ms)
            self._expect(group_id, member_id, deadline_ms)

    def _open(self, request: ShareGroupHeartbeatRequest) -> ShareGroup:
        group = self._state.share_groups.get(request.group_id)
        if group is not None:
            return group
        other = self._state.group(request.group_id)
        if other is not None:
            raise ApiError(
                ErrorCode.group_id_not_found,
                f"{request.group_id} is not a share group, but of type {other.type_name}",
            )
        if request.member_epoch != JOIN_EPOCH:
            raise _no_group(request.group_id)
        return ShareGroup(request.group_id)

    def _find(self, group: ShareGroup, request: ShareGroupHeartbeatRequest) -> ShareMember:
        member_id = request.member_id
        if request.member_epoch == JOIN_EPOCH:
            known = group.members.get(member_id)
            if known is None:
                self._validate_size(group)
            return known or ShareMember(member_id=member_id)
        member = group.member(member_id)
        if request.member_epoch not in {member.epoch, member.previous_epoch}:
            raise ApiError(
                ErrorCode.fenced_member_epoch,
                epoch_refusal("share", request.member_epoch, member.epoch),
            )
        return member

    def _validate_size(self, group: ShareGroup) -> None:
        size_max = self._state.share_config(group.group_id).max_size
        if len(group.members) >= size_max:
            raise ApiError(
                ErrorCode.group_max_size_reached, f"the group has {size_max} members already"
            )

    # Steps.

    def _maybe_begin_epoch(self, draft: Draft, *, subscription_changed: bool) -> None:
        group_id, version = draft.group.group_id, self._state.catalog.topics_version
        if not subscription_changed and self._state.topics_seen.get(group_id) == version:
            return
        topics_hash = assignable_hash(self._assignable(draft.group))
        if subscription_changed or topics_hash != draft.group.metadata_hash:
            draft.write(draft.group.epoch_record(draft.group.epoch + 1, topics_hash))
        self._state.topics_seen[group_id] = version

    def _advance(self, draft: Draft, member: ShareMember, now_ms: int) -> ShareMember:
        if self._pace(draft.group).is_target_due(draft.group, now_ms):
            write_target(draft, self._state.catalog, self._assignable(draft.group), now_ms)
        group = draft.group
        moved = member.moved_to(group.assignment_epoch, group.target(member.member_id))
        if moved != group.members[member.member_id]:
            draft.write(moved.assignment_record(group.group_id))
        return moved

    def _assignable(self, group: ShareGroup) -> Assignment:
        return group.initialized & subscribed_partitions(group, self._state.catalog)

    # Leaving.

    def _leave(self, request: ShareGroupHeartbeatRequest) -> Result[ShareGroupHeartbeatResponse]:
        group = self._state.share_groups.get(request.group_id)
        if group is None:
            raise _no_group(request.group_id)
        member = group.member(request.member_id)
        self._state.timers.cancel(_key(group.group_id, member.member_id))
        response = ShareGroupHeartbeatResponse(
            throttle_time=NO_THROTTLE,
            error_code=ErrorCode.none,
            member_id=member.member_id,
            member_epoch=i32(LEAVE_EPOCH),
            heartbeat_interval=milliseconds(0),
        )
        return Result(response, tuple(self._removal(group, member.member_id)))

    def _removal(self, group: ShareGroup, member_id: str) -> Iterable[Record]:
        """The next heartbeat of another member makes the target without it."""
        self._state.absences.end(group.group_id, member_id)
        draft = Draft(group)
        draft.write(*group.member_tombstones(member_id))
        topics_hash = assignable_hash(self._assignable(draft.group))
        draft.write(draft.group.epoch_record(draft.group.epoch + 1, topics_hash))
        return draft.records

    # Sessions.

    def _keep_alive(self, group_id: str, member_id: str, now_ms: int) -> None:
        self._state.absences.end(group_id, member_id)
        timeout_ms = self._state.share_config(group_id).session_timeout_ms
        self._expect(group_id, member_id, now_ms + timeout_ms)

    def _expect(self, group_id: str, member_id: str, deadline_ms: int) -> None:
        expiry = partial(self._expire, group_id, member_id)
        self._state.timers.schedule(_key(group_id, member_id), deadline_ms, expiry)

    def _expire(self, group_id: str, member_id: str, now_ms: int) -> Result[None]:
        del now_ms
        group = self._state.share_groups.get(group_id)
        if group is None or member_id not in group.members:
            return Result(None)
        return Result(None, tuple(self._removal(group, member_id)))

    def _pace(self, group: ShareGroup) -> Pace:
        return self._state.share_config(group.group_id).pace

    def _response(
        self, group: ShareGroup, member: ShareMember, now_ms: int, *, tell_assignment: bool
    ) -> ShareGroupHeartbeatResponse:
        return ShareGroupHeartbeatResponse(
            throttle_time=NO_THROTTLE,
            error_code=ErrorCode.none,
            member_id=member.member_id,
            member_epoch=i32(member.epoch),
            heartbeat_interval=milliseconds(self._pace(group).next_heartbeat_ms(group, now_ms)),
            assignment=_assignment(member) if tell_assignment else None,
        )


def _key(group_id: str, member_id: str) -> str:
    return f"share/session/{group_id}/{member_id}"


def _no_group(group_id: str) -> ApiError:
    return ApiError(ErrorCode.group_id_not_found, f"there is no share group {group_id}")


def _validate(request: ShareGroupHeartbeatRequest) -> None:
    _require(bool(request.group_id), "GroupId can't be empty.")
    _require(bool(request.member_id), "MemberId can't be empty.")
    _require(request.rack_id != "", "RackId can't be empty.")
    _require(request.member_epoch >= LEAVE_EPOCH, "MemberEpoch is invalid.")
    if request.member_epoch == JOIN_EPOCH:
        _require(
            bool(request.subscribed_topic_names),
            "SubscribedTopicNames must be set in first request.",
        )


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise ApiError(ErrorCode.invalid_request, problem)


def _updated(
    member: ShareMember, request: ShareGroupHeartbeatRequest, caller: Caller
) -> ShareMember:
    """Fields missing from the request stay unchanged."""
    names = request.subscribed_topic_names
    return replace(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        client_id=caller.client_id,
        client_host=caller.client_host,
        subscribed_topic_names=(
            member.subscribed_topic_names if names is None else tuple(sorted(set(names)))
        ),
    )


def _assignment(member: ShareMember) -> ResponseAssignment:
    return ResponseAssignment(
        topic_partitions=tuple(
            TopicPartitions(topic_id=topic_id, partitions=tuple(map(i32, partitions)))
            for topic_id, partitions in by_topic(member.assigned).items()
        )
    )
