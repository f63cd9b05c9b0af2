"""ConsumerGroupHeartbeat: joining, staying in and leaving a consumer group (KIP-848).

A member sends only what has changed since its last heartbeat, and gets its assignment only when
that has changed, unless it sends everything. Its epoch fences it: with any other epoch it must
revoke all partitions and join again. The previous epoch is accepted as long as the member owns only
what it was assigned, since it may have missed the last response.
"""

from dataclasses import replace

from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest
from kio.schema.consumer_group_heartbeat.v1.response import (
    Assignment as ResponseAssignment,
)
from kio.schema.consumer_group_heartbeat.v1.response import (
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kio.static.primitive import i32

from ottla.groups.caller import Caller
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.consumer.group import ConsumerGroup, Draft
from ottla.groups.consumer.member import ConsumerMember
from ottla.groups.consumer.migration import Migration
from ottla.groups.consumer.progress import Progress
from ottla.groups.consumer.sessions import ConsumerSessions
from ottla.groups.consumer.validation import validate_heartbeat
from ottla.groups.modern.validation import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEFT_TEMPORARILY_EPOCH,
    no_group,
    validate_epoch,
    validate_size,
)
from ottla.groups.operation_effects import Effects
from ottla.groups.partitions import Assignment, assignment_of, by_topic
from ottla.groups.state import CoordinatorState
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE, in_milliseconds, milliseconds


class ConsumerHeartbeat:
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

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller, now_ms: int
    ) -> Result[ConsumerGroupHeartbeatResponse]:
        validate_heartbeat(request, caller, self._state.config)
        if request.member_epoch in {LEAVE_EPOCH, LEFT_TEMPORARILY_EPOCH}:
            return self._leave(request, now_ms)
        draft, classic = self._open(request)
        member_id = request.member_id or self._state.new_uuid()
        validate_size(draft.group, member_id, self._state.config.consumer_max_size)
        owned = _owned(request)
        before = self._find(draft, request, member_id, owned)
        member = _updated(before, request, caller)
        subscription_changed = draft.write_subscriber(member)
        member = self._progress.advance(
            draft,
            member,
            owned,
            now_ms,
            subscription_changed=subscription_changed,
            may_describe=caller.may_describe,
        )
        self._keep_watch(draft, member, now_ms)
        effects = Effects()
        if classic is not None:
            self._migration.close(classic, effects)
        effects.records.extend(draft.records)
        tell = _is_full(request) or member.assigned != before.assigned
        pace = self._state.consumer_config(request.group_id).pace
        interval_ms = pace.next_heartbeat_ms(draft.group, now_ms)
        assigned = member.assigned if tell else None
        return effects.result(_response(member_id, member.epoch, interval_ms, assigned))

    # Finding the group.

    def _open(self, request: ConsumerGroupHeartbeatRequest) -> tuple[Draft, ClassicGroup | None]:
        """The group, and the classic group that this operation ends."""
        group = self._state.consumer_groups.get(request.group_id)
        if group is not None:
            return Draft(group), None
        if request.member_epoch != JOIN_EPOCH:
            raise no_group("consumer", request.group_id)
        classic = self._state.classic_group(request.group_id)
        if classic is None:
            return Draft(ConsumerGroup(request.group_id)), None
        if classic.is_empty:
            return Draft(ConsumerGroup(request.group_id), classic.tombstones()), classic
        return self._migration.upgraded(classic), classic

    # Finding the member.

    def _find(
        self,
        draft: Draft,
        request: ConsumerGroupHeartbeatRequest,
        member_id: str,
        owned: Assignment | None,
    ) -> ConsumerMember:
        if request.member_epoch == JOIN_EPOCH:
            return self._joining(draft, request, member_id)
        group = draft.group
        member = find_member(group, member_id, request.instance_id)
        validate_epoch(group.type_name, member, request.member_epoch, owned)
        return member

    def _joining(
        self, draft: Draft, request: ConsumerGroupHeartbeatRequest, member_id: str
    ) -> ConsumerMember:
        """A joining member owns nothing, even if the group still knows it with an assignment."""
        group = draft.group
        if request.instance_id is not None:
            predecessor = group.static_member(request.instance_id)
            if predecessor is not None and predecessor.member_id != member_id:
                return self._succeed(draft, predecessor, member_id)
        known = group.members.get(member_id)
        return ConsumerMember(member_id=member_id) if known is None else known.without_assignment()

    def _succeed(self, draft: Draft, predecessor: ConsumerMember, member_id: str) -> ConsumerMember:
        """A static member returns with a new id and gets its predecessor's assignment."""
        has_left = predecessor.epoch == LEFT_TEMPORARILY_EPOCH
        if not has_left and not predecessor.uses_classic_protocol:
            raise ApiError(
                ErrorCode.unreleased_instance_id,
                f"instance {predecessor.instance_id} is member {predecessor.member_id}",
            )
        return succeed(draft, predecessor, member_id, self._sessions)

    def _keep_watch(self, draft: Draft, member: ConsumerMember, now_ms: int) -> None:
        """The first heartbeat of a group may bring in the members of a classic one."""
        group_id = draft.group.group_id
        is_new = group_id not in self._state.consumer_groups
        for each in draft.group.members.values() if is_new else (member,):
            self._sessions.keep_alive(group_id, each, now_ms)

    # Leaving.

    def _leave(
        self, request: ConsumerGroupHeartbeatRequest, now_ms: int
    ) -> Result[ConsumerGroupHeartbeatResponse]:
        group = self._state.consumer_groups.get(request.group_id)
        if group is None:
            raise no_group("consumer", request.group_id)
        member = find_member(group, request.member_id, request.instance_id)
        effects = Effects()
        if request.member_epoch == LEFT_TEMPORARILY_EPOCH:
            effects.records.append(group.assignment_record(member.resting(LEFT_TEMPORARILY_EPOCH)))
        else:
            self._sessions.remove(group, [member.member_id], now_ms, effects)
        return effects.result(_response(member.member_id, request.member_epoch))


def succeed(
    draft: Draft, predecessor: ConsumerMember, member_id: str, sessions: ConsumerSessions
) -> ConsumerMember:
    group = draft.group
    target = group.target(predecessor.member_id)
    successor = replace(predecessor.resting(epoch=0), member_id=member_id, previous_epoch=0)
    draft.write(
        *group.member_tombstones(predecessor.member_id),
        group.member_record(successor),
        group.target_record(member_id, target),
        group.assignment_record(successor),
    )
    sessions.end(group.group_id, predecessor.member_id)
    return successor


def find_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    if instance_id is None:
        return group.member(member_id)
    member = group.static_member(instance_id)
    if member is None:
        raise ApiError(ErrorCode.unknown_member_id, f"instance {instance_id} is not known")
    if member.member_id != member_id:
        raise ApiError(
            ErrorCode.fenced_instance_id,
            f"instance {instance_id} has a newer member than {member_id}",
        )
    return member


def _owned(request: ConsumerGroupHeartbeatRequest) -> Assignment | None:
    if request.topic_partitions is None:
        return None
    return assignment_of((topic.topic_id, topic.partitions) for topic in request.topic_partitions)


def _updated(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, caller: Caller
) -> ConsumerMember:
    """Fields missing from the request stay unchanged; an empty expression means none."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    rebalance_timeout_ms = in_milliseconds(request.rebalance_timeout)
    member = member.updated(
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        client_id=caller.client_id,
        client_host=caller.client_host,
        subscribed_topic_names=None if names is None else tuple(sorted(set(names))),
        rebalance_timeout_ms=None if rebalance_timeout_ms < 0 else rebalance_timeout_ms,
        server_assignor=request.server_assignor,
    )
    if regex is not None and (regex or None) != member.subscribed_topic_regex:
        member = replace(member, subscribed_topic_regex=regex or None)
    return member if member.classic is None else replace(member, classic=None)


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether a client that is unsure what the coordinator knows sends everything."""
    says_subscription = (
        request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    )
    says_rest = (
        in_milliseconds(request.rebalance_timeout) >= 0 and request.topic_partitions is not None
    )
    return request.member_epoch == JOIN_EPOCH or (says_subscription and says_rest)


def _response(
    member_id: str, epoch: int, interval_ms: int = 0, assigned: Assignment | None = None
) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
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
