"""StreamsGroupHeartbeat: joining, staying in and leaving a streams group (KIP-1071).

A member joins with its topology. The first one sets the group's; a member with an older one is told
that it is stale, and a different one with the same epoch is refused. Tasks are assigned once all
topics of the topology exist and fit. Until then members are told what is missing, and `missing` in
the result has the internal topics that the caller should create.

As in Kafka 4.3 there are no static members, warm-up tasks, regular expressions or topology updates.
"""

from dataclasses import replace
from functools import partial
from typing import NamedTuple

from kio.schema.streams_group_heartbeat.v0.request import StreamsGroupHeartbeatRequest
from kio.schema.streams_group_heartbeat.v0.response import (
    Status as ResponseStatus,
)
from kio.schema.streams_group_heartbeat.v0.response import (
    StreamsGroupHeartbeatResponse,
    TaskIds,
)
from kio.static.primitive import i8, i32

from ottla.groups.caller import Caller
from ottla.groups.modern.reconciliation import reconcile
from ottla.groups.modern.subscription import subscribed_hash
from ottla.groups.modern.validation import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    no_group,
    validate_epoch,
    validate_size,
)
from ottla.groups.state import CoordinatorState
from ottla.groups.streams.assignor import MemberSpec, assign_sticky
from ottla.groups.streams.config import StreamsConfig
from ottla.groups.streams.endpoints import partitions_by_endpoint
from ottla.groups.streams.group import Draft, StreamsGroup
from ottla.groups.streams.member import StreamsMember, free_tasks
from ottla.groups.streams.records import Endpoint, KeyValue, StreamsGroupTopologyValue
from ottla.groups.streams.sessions import StreamsSessions
from ottla.groups.streams.tasks import (
    NOTHING,
    TaskAssignment,
    Tasks,
    by_subtopology,
    tasks_of,
)
from ottla.groups.streams.topology import (
    ConfiguredTopology,
    InternalTopic,
    Problem,
    Status,
    configure,
    topology_of,
)
from ottla.groups.streams.validation import validate
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE, in_milliseconds, milliseconds


class StreamsHeartbeatResult(NamedTuple):
    response: StreamsGroupHeartbeatResponse
    missing: tuple[InternalTopic, ...] = ()  # To be created by a caller with permission.


class _Seen(NamedTuple):
    """The result of checking a topology against one version of the catalog."""

    topics_version: int
    topology: StreamsGroupTopologyValue
    configured: ConfiguredTopology


class StreamsHeartbeat:
    def __init__(self, state: CoordinatorState) -> None:
        self._state = state
        self.sessions = StreamsSessions(state, self._write_target)
        # Volatile, by group id. A new coordinator starts without.
        self._seen: dict[str, _Seen] = {}
        self._endpoint_epochs: dict[str, int] = {}
        self._shutdowns: dict[str, str] = {}  # The member that asked for it.

    def forget(self, group_id: str) -> None:
        """The group is gone."""
        self._seen.pop(group_id, None)
        self._endpoint_epochs.pop(group_id, None)
        self._shutdowns.pop(group_id, None)

    def heartbeat(
        self, request: StreamsGroupHeartbeatRequest, caller: Caller, now_ms: int
    ) -> Result[StreamsHeartbeatResult]:
        validate(request)
        if request.member_epoch == LEAVE_EPOCH:
            return self._leave(request, now_ms)
        draft = self._open(request)
        was_empty = draft.group.is_empty
        owned = _owned(request)
        before = self._find(draft.group, request, owned)
        member = _updated(before, request, caller)
        member_changed = draft.write_member(member)
        problems = self._write_topology(draft, request, member)
        configured = self._configured(draft.group)
        _validate_tasks(configured, owned)
        self._maybe_begin_epoch(draft, configured, member_changed=member_changed)
        group_id = request.group_id
        if was_empty:
            self._shutdowns.pop(group_id, None)
            self.sessions.delay_first_target(group_id, self._config(group_id), now_ms)
        member = self._advance(draft, member, owned, now_ms)
        self.sessions.keep_alive(group_id, member, now_ms)
        if request.shutdown_application:
            self._shutdowns[group_id] = member.member_id
        problems += self._group_problems(group_id, configured)
        tell = request.member_epoch == JOIN_EPOCH or member.assigned != before.assigned
        response = self._response(draft.group, request, member, now_ms, tell_assignment=tell)
        statuses = tuple(
            ResponseStatus(status_code=i8(status), status_detail=detail)
            for status, detail in problems
        )
        response = replace(response, status=statuses)
        return Result(StreamsHeartbeatResult(response, configured.missing), tuple(draft.records))

    # The group and the member.

    def _open(self, request: StreamsGroupHeartbeatRequest) -> Draft:
        group_id = request.group_id
        group = self._state.streams_groups.get(group_id)
        if group is not None:
            return Draft(group)
        other = self._state.group(group_id)
        if other is None and request.member_epoch == JOIN_EPOCH:
            return Draft(StreamsGroup(group_id))
        if other is not None and other.type_name == "classic" and other.is_empty:
            if request.member_epoch == JOIN_EPOCH:
                return Draft(StreamsGroup(group_id), other.tombstones())
            other = None
        raise no_group("streams", group_id, other)

    def _find(
        self,
        group: StreamsGroup,
        request: StreamsGroupHeartbeatRequest,
        owned: TaskAssignment | None,
    ) -> StreamsMember:
        member_id = request.member_id
        if request.member_epoch == JOIN_EPOCH:
            validate_size(group, member_id, self._config(group.group_id).max_size)
            known = group.members.get(member_id) or StreamsMember(member_id=member_id)
            return known.without_assignment()
        member = group.member(member_id)
        validate_epoch(group.type_name, member, request.member_epoch, owned)
        return member

    def _write_topology(
        self, draft: Draft, request: StreamsGroupHeartbeatRequest, member: StreamsMember
    ) -> list[Problem]:
        group = draft.group
        if request.topology is not None:
            topology = topology_of(request.topology)
            if group.topology is None:
                draft.write(group.topology_record(topology))
            elif topology.epoch >= group.topology.epoch and topology != group.topology:
                raise ApiError(ErrorCode.invalid_request, "Topology updates are not supported yet.")
        topology_epoch = draft.group.topology.epoch if draft.group.topology is not None else 0
        if member.topology_epoch >= topology_epoch:
            return []
        detail = (
            f"The member's topology epoch {member.topology_epoch} is behind the group's topology"
            f" epoch {topology_epoch}."
        )
        return [Problem(Status.STALE_TOPOLOGY, detail)]

    # Steps.

    def _configured(self, group: StreamsGroup) -> ConfiguredTopology:
        assert group.topology is not None, "the first member comes with one"
        version = self._state.catalog.topics_version
        seen = self._seen.get(group.group_id)
        if seen is None or (seen.topics_version, seen.topology) != (version, group.topology):
            configured = configure(group.topology, self._state.catalog)
            seen = _Seen(version, group.topology, configured)
            self._seen[group.group_id] = seen
        return seen.configured

    def _maybe_begin_epoch(
        self, draft: Draft, configured: ConfiguredTopology, *, member_changed: bool
    ) -> None:
        group = draft.group
        assert group.topology is not None
        validated_epoch = group.topology.epoch if configured.is_ready else -1
        topics_hash = subscribed_hash(group, self._state.catalog)
        standby_count = self._config(group.group_id).standby_count
        configs = (KeyValue(key="num.standby.replicas", value=str(standby_count)),)
        after = (topics_hash, validated_epoch, configs)
        before = (group.metadata_hash, group.validated_topology_epoch, group.assignment_configs)
        if member_changed or after != before:
            draft.write(group.epoch_record(group.epoch + 1, *after))

    def _advance(
        self, draft: Draft, member: StreamsMember, owned: TaskAssignment | None, now_ms: int
    ) -> StreamsMember:
        group_id = draft.group.group_id
        is_due = self._config(group_id).pace.is_target_due(draft.group, now_ms)
        if is_due and not self.sessions.is_delayed(group_id):
            self._write_target(draft, now_ms)
        group = draft.group
        others = (other for other in group.members.values() if other.member_id != member.member_id)
        target = group.target(member.member_id)
        free = partial(free_tasks, member, others)
        moved = reconcile(member, group.assignment_epoch, target, owned, free)
        draft.write_assignment(moved)
        return moved

    def _write_target(self, draft: Draft, now_ms: int) -> None:
        group = draft.group
        configured = self._configured(group)
        task_counts = configured.task_counts if configured.is_ready else {}
        specs = {
            member_id: MemberSpec(member.process_id, group.target(member_id))
            for member_id, member in sorted(group.members.items())
        }
        targets = assign_sticky(specs, task_counts, self._config(group.group_id).standby_count)
        draft.write_target(targets, now_ms)

    # Leaving.

    def _leave(
        self, request: StreamsGroupHeartbeatRequest, now_ms: int
    ) -> Result[StreamsHeartbeatResult]:
        group = self._state.streams_groups.get(request.group_id)
        if group is None:
            raise no_group("streams", request.group_id)
        member = group.member(request.member_id)
        response = _response(member.member_id, LEAVE_EPOCH)
        removal = self.sessions.removal(group, member.member_id, now_ms)
        return Result(StreamsHeartbeatResult(response), removal.records)

    # The response.

    def _group_problems(self, group_id: str, configured: ConfiguredTopology) -> list[Problem]:
        problems = [] if configured.problem is None else [configured.problem]
        if self.sessions.is_delayed(group_id):
            detail = "Assignment delayed due to the configured initial rebalance delay."
            problems.append(Problem(Status.ASSIGNMENT_DELAYED, detail))
        requested_by = self._shutdowns.get(group_id)
        if requested_by is not None:
            detail = (
                f"Streams group member {requested_by} encountered a fatal error and requested a"
                " shutdown for the entire application."
            )
            problems.append(Problem(Status.SHUTDOWN_APPLICATION, detail))
        return problems

    def _response(
        self,
        group: StreamsGroup,
        request: StreamsGroupHeartbeatRequest,
        member: StreamsMember,
        now_ms: int,
        *,
        tell_assignment: bool,
    ) -> StreamsGroupHeartbeatResponse:
        group_id = group.group_id
        if tell_assignment and member.user_endpoint is not None:
            self._endpoint_epochs[group_id] = self._endpoint_epochs.get(group_id, 0) + 1
        endpoint_epoch = self._endpoint_epochs.get(group_id, 0)
        endpoints = None
        if endpoint_epoch != request.endpoint_information_epoch:
            endpoints = partitions_by_endpoint(group, self._state.catalog)
        response = _response(
            member.member_id,
            member.epoch,
            self._config(group_id).pace.next_heartbeat_ms(group, now_ms),
            member.assigned if tell_assignment else None,
        )
        return replace(
            response,
            endpoint_information_epoch=i32(endpoint_epoch),
            partitions_by_user_endpoint=endpoints,
        )

    def _config(self, group_id: str) -> StreamsConfig:
        return self._state.streams_config(group_id)


def _owned(request: StreamsGroupHeartbeatRequest) -> TaskAssignment | None:
    if request.active_tasks is None:
        return NOTHING if request.member_epoch == JOIN_EPOCH else None
    return TaskAssignment(
        *(
            tasks_of((ids.subtopology_id, ids.partitions) for ids in role or ())
            for role in (request.active_tasks, request.standby_tasks, request.warmup_tasks)
        )
    )


def _validate_tasks(configured: ConfiguredTopology, owned: TaskAssignment | None) -> None:
    if owned is None or not configured.is_ready:
        return
    for subtopology_id, partition in owned.all:
        if not 0 <= partition < configured.task_counts.get(subtopology_id, 0):
            raise ApiError(
                ErrorCode.invalid_request,
                f"there is no task {partition} of subtopology {subtopology_id}",
            )


def _updated(
    member: StreamsMember, request: StreamsGroupHeartbeatRequest, caller: Caller
) -> StreamsMember:
    """Fields missing from the request stay unchanged."""
    rebalance_timeout_ms = in_milliseconds(request.rebalance_timeout)
    endpoint, tags = request.user_endpoint, request.client_tags
    return member.updated(
        rack_id=request.rack_id,
        client_id=caller.client_id,
        client_host=caller.client_host,
        rebalance_timeout_ms=None if rebalance_timeout_ms < 0 else rebalance_timeout_ms,
        topology_epoch=None if request.topology is None else request.topology.epoch,
        process_id=request.process_id,
        user_endpoint=endpoint and Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=None
        if tags is None
        else tuple(KeyValue(key=tag.key, value=tag.value) for tag in tags),
    )


def _response(
    member_id: str, epoch: int, interval_ms: int = 0, assigned: TaskAssignment | None = None
) -> StreamsGroupHeartbeatResponse:
    return StreamsGroupHeartbeatResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        member_id=member_id,
        member_epoch=i32(epoch),
        heartbeat_interval=milliseconds(interval_ms),
        acceptable_recovery_lag=i32(0),
        task_offset_interval=milliseconds(0),
        status=None,
        active_tasks=None if assigned is None else _task_ids(assigned.active),
        standby_tasks=None if assigned is None else _task_ids(assigned.standby),
        warmup_tasks=None if assigned is None else _task_ids(assigned.warmup),
        endpoint_information_epoch=i32(0),
        partitions_by_user_endpoint=None,
    )


def _task_ids(tasks: Tasks) -> tuple[TaskIds, ...]:
    return tuple(
        TaskIds(subtopology_id=subtopology_id, partitions=tuple(map(i32, partitions)))
        for subtopology_id, partitions in by_subtopology(tasks).items()
    )
