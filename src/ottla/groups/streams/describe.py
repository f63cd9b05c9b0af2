"""StreamsGroupDescribe, for a single group."""

from kio.schema.streams_group_describe.v0.response import (
    Assignment,
    DescribedGroup,
    Endpoint,
    KeyValue,
    Member,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i16, i32, u16

from ottla.groups.streams import records
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.member import StreamsMember
from ottla.groups.streams.tasks import TaskAssignment, Tasks, by_subtopology
from ottla.protocol.errors import ApiError, ErrorCode


def describe(group: StreamsGroup) -> DescribedGroup:
    return DescribedGroup(
        error_code=ErrorCode.none,
        group_id=GroupId(group.group_id),
        group_state=group.state_name,
        group_epoch=i32(group.epoch),
        assignment_epoch=i32(group.assignment_epoch),
        topology=None if group.topology is None else _topology(group.topology),
        members=tuple(
            _member(member, group.target(member.member_id)) for member in group.members.values()
        ),
    )


def describe_missing(group_id: str, error: ApiError) -> DescribedGroup:
    return DescribedGroup(
        error_code=error.code,
        error_message=error.message,
        group_id=GroupId(group_id),
        group_state="",
        group_epoch=i32(0),
        assignment_epoch=i32(0),
        members=(),
    )


def _topology(topology: records.StreamsGroupTopologyValue) -> Topology:
    return Topology(
        epoch=i32(topology.epoch),
        subtopologies=tuple(
            Subtopology(
                subtopology_id=part.subtopology_id,
                source_topics=tuple(map(TopicName, part.source_topics)),
                repartition_sink_topics=tuple(map(TopicName, part.repartition_sink_topics)),
                state_changelog_topics=tuple(map(_topic, part.state_changelog_topics)),
                repartition_source_topics=tuple(map(_topic, part.repartition_source_topics)),
            )
            for part in topology.subtopologies
        ),
    )


def _topic(topic: records.TopicInfo) -> TopicInfo:
    return TopicInfo(
        name=TopicName(topic.name),
        partitions=i32(topic.partitions),
        replication_factor=i16(topic.replication_factor),
        topic_configs=_pairs(topic.topic_configs),
    )


def _pairs(pairs: tuple[records.KeyValue, ...]) -> tuple[KeyValue, ...]:
    return tuple(KeyValue(key=pair.key, value=pair.value) for pair in pairs)


def _member(member: StreamsMember, target: TaskAssignment) -> Member:
    return Member(
        member_id=member.member_id,
        member_epoch=i32(member.epoch),
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=i32(member.topology_epoch),
        process_id=member.process_id,
        user_endpoint=_endpoint(member.user_endpoint),
        client_tags=_pairs(member.client_tags),
        task_offsets=(),
        task_end_offsets=(),
        assignment=_assignment(member.held),
        target_assignment=_assignment(target),
        is_classic=False,
    )


def _endpoint(endpoint: records.Endpoint | None) -> Endpoint | None:
    return None if endpoint is None else Endpoint(host=endpoint.host, port=u16(endpoint.port))


def _assignment(tasks: TaskAssignment) -> Assignment:
    return Assignment(
        active_tasks=_task_ids(tasks.active),
        standby_tasks=_task_ids(tasks.standby),
        warmup_tasks=_task_ids(tasks.warmup),
    )


def _task_ids(tasks: Tasks) -> tuple[TaskIds, ...]:
    return tuple(
        TaskIds(subtopology_id=subtopology_id, partitions=tuple(map(i32, partitions)))
        for subtopology_id, partitions in by_subtopology(tasks).items()
    )
