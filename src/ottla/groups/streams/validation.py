"""Validates streams group heartbeats."""

from kio.schema.streams_group_heartbeat.v0.request import StreamsGroupHeartbeatRequest, Topology

from ottla.groups.modern.validation import JOIN_EPOCH, LEAVE_EPOCH, require
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import in_milliseconds


def validate(request: StreamsGroupHeartbeatRequest) -> None:
    require(bool(request.member_id), "MemberId can't be empty.")
    require(bool(request.group_id), "GroupId can't be empty.")
    require(request.rack_id != "", "RackId can't be empty.")
    require(request.instance_id is None, "Static membership is not yet supported.")
    require(
        request.member_epoch >= LEAVE_EPOCH,
        f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -1.",
    )
    roles = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    require(
        all(role is None for role in roles) or None not in roles,
        "If one task-type is non-null, all must be non-null.",
    )
    require(not request.warmup_tasks, "WarmupTasks are not supported yet.")
    require(request.task_offsets is None, "TaskOffsets are not supported yet.")
    require(request.task_end_offsets is None, "TaskEndOffsets are not supported yet.")
    if request.member_epoch != JOIN_EPOCH:
        require(request.topology is None, "Topology can only be provided when (re-)joining.")
        return
    require(
        in_milliseconds(request.rebalance_timeout) >= 0,
        "RebalanceTimeoutMs must be provided in first request.",
    )
    require(not any(roles), "Tasks must be empty when (re-)joining.")
    require(request.topology is not None, "Topology must be non-null when (re-)joining.")
    assert request.topology is not None
    _validate_topology(request.topology)


def _validate_topology(topology: Topology) -> None:
    for part in topology.subtopologies:
        require(
            not part.source_topic_regex,
            "Regular expressions for source topics are not supported yet.",
        )
        if not part.source_topics and not part.repartition_source_topics:
            raise _invalid(f"subtopology {part.subtopology_id} reads no topic")
    ids = [part.subtopology_id for part in topology.subtopologies]
    if not ids or len(set(ids)) < len(ids):
        raise _invalid("a topology has subtopologies, each with an id of its own")


def _invalid(problem: str) -> ApiError:
    return ApiError(ErrorCode.streams_invalid_topology, problem)
