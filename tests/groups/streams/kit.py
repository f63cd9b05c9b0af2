"""Topologies and heartbeats of streams groups."""

from collections.abc import Iterable
from typing import Any

from kio.schema.streams_group_heartbeat.v0.request import (
    CopartitionGroup,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from kio.schema.streams_group_heartbeat.v0.response import StreamsGroupHeartbeatResponse
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i16, i32
from tests.groups.kit import CALLER, Catalog, Coordinator, duration

from ottla.groups.streams.config import StreamsConfig
from ottla.groups.streams.heartbeat import StreamsHeartbeatResult
from ottla.groups.streams.tasks import TaskAssignment, by_subtopology

AT_ONCE = StreamsConfig(initial_delay_ms=0)


def info(name: str, partitions: int = 0) -> TopicInfo:
    return TopicInfo(
        name=TopicName(name),
        partitions=i32(partitions),
        replication_factor=i16(0),
        topic_configs=(),
    )


def part(
    subtopology_id: str,
    *sources: str,
    sinks: Iterable[str] = (),
    repartitions: Iterable[TopicInfo] = (),
    changelogs: Iterable[str] = (),
    together: Iterable[CopartitionGroup] = (),
) -> Subtopology:
    return Subtopology(
        subtopology_id=subtopology_id,
        source_topics=tuple(map(TopicName, sources)),
        state_changelog_topics=tuple(map(info, changelogs)),
        repartition_sink_topics=tuple(map(TopicName, sinks)),
        repartition_source_topics=tuple(repartitions),
        copartition_groups=tuple(together),
    )


def topology(*parts: Subtopology, epoch: int = 0) -> Topology:
    return Topology(epoch=i32(epoch), subtopologies=parts)


ONE_PART = topology(part("0", "t"))
COUNTS = topology(
    part("0", "t", sinks=["again"]),
    part("1", repartitions=[info("again")], changelogs=["state"]),
)


def new_coordinator(catalog: Catalog, config: StreamsConfig = AT_ONCE) -> Coordinator:
    return Coordinator(catalog, streams=config)


def task_ids(tasks: Iterable[Any]) -> tuple[TaskIds, ...]:
    return tuple(
        TaskIds(subtopology_id=subtopology_id, partitions=tuple(map(i32, partitions)))
        for subtopology_id, partitions in by_subtopology(tasks).items()
    )


def beat_result(
    coordinator: Coordinator,
    member_id: str = "a",
    epoch: int = 0,
    *,
    owned: TaskAssignment | None = None,
    of: Topology | None = None,
    process: str | None = None,
    **more: Any,
) -> StreamsHeartbeatResult:
    joins = epoch == 0
    request = StreamsGroupHeartbeatRequest(
        group_id=GroupId("g"),
        member_id=member_id,
        member_epoch=i32(epoch),
        endpoint_information_epoch=i32(more.pop("endpoint_epoch", 0)),
        rebalance_timeout=duration(30_000 if joins else -1),
        topology=(of or ONE_PART) if joins else None,
        active_tasks=None if owned is None else task_ids(owned.active),
        standby_tasks=None if owned is None else task_ids(owned.standby),
        warmup_tasks=None if owned is None else task_ids(owned.warmup),
        process_id=(process or f"process of {member_id}") if joins else None,
        client_tags=() if joins else None,
        task_offsets=None,
        task_end_offsets=None,
        **more,
    )
    machine = coordinator.machine
    reply = coordinator.run(lambda now_ms: machine.streams_group_heartbeat(request, CALLER, now_ms))
    assert isinstance(reply.value, StreamsHeartbeatResult), reply.value
    return reply.value


def beat(coordinator: Coordinator, *args: Any, **more: Any) -> StreamsGroupHeartbeatResponse:
    return beat_result(coordinator, *args, **more).response


def active(response: StreamsGroupHeartbeatResponse) -> list[tuple[str, int]] | None:
    if response.active_tasks is None:
        return None
    return [
        (ids.subtopology_id, int(partition))
        for ids in response.active_tasks
        for partition in ids.partitions
    ]


def statuses(response: StreamsGroupHeartbeatResponse) -> list[int]:
    return [int(status.status_code) for status in response.status or ()]
